package fieldperm

import (
	"context"
	"fmt"
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// cached answers at once, so that the benchmark measures only planning and deciding.
type cached map[string]bool

func (c cached) Authorize(_ context.Context, verb string, _ bool) (AuthorizerDecision, error) {
	return AuthorizerDecision{Outcome: OutcomeOf(c[verb]), Reason: "RBAC"}, nil
}

func holding(verbs ...string) cached {
	c := cached{}
	for _, v := range verbs {
		c[v] = true
	}
	return c
}

// labels are changes of n labels with a prefix each.
func labels(n int) (rs []Requirement, held []string) {
	for i := range n {
		label := fmt.Sprintf("label(p%d)", i)
		rs, held = append(rs, need(fmt.Sprintf("l%d", i), "*", "metadata", "labels", label)), append(held, "granular:"+label)
	}
	return rs, held
}

// fields are changes of n fields of a spec, under a verb each or all under one.
func fields(n int, eachItsOwn bool) (rs []Requirement) {
	spec := need("", "*", "specification")
	for i := range n {
		r := spec
		if eachItsOwn {
			r = need("", "*", "specification", fmt.Sprintf("f%d", i))
		}
		r.Path = fieldpath.Path{}.Field(fmt.Sprintf("f%d", i))
		rs = append(rs, r)
	}
	return rs
}

// BenchmarkPlan measures Decide without the time of the authorizer. hostile multiplies the input that an attacker can choose by four; the
// time should grow by the same factor.
func BenchmarkPlan(b *testing.B) {
	replicas := need("replicas", "*", "specification", "scale")
	twenty, each := labels(20)
	quarter, _ := labels(1250)
	all, _ := labels(5000)
	for _, c := range []struct {
		name         string
		requirements []Requirement
		held         cached
		parallel     int
	}{
		{"one-field", []Requirement{replicas}, holding("granular", "granular:scale"), 1},
		{"one-field/parallel=4", []Requirement{replicas}, holding("granular", "granular:scale"), 4},
		{"one-field/denied", []Requirement{replicas}, holding("granular"), 1},
		{"two-fields", []Requirement{need("a", "*", "metadata", "annotations", "annotation(k)"), replicas}, holding("granular", "granular:metadata", "granular:scale"), 1},
		{"labels=20", twenty, holding(append(each, "granular")...), 1},
		{"labels=20/parallel=4", twenty, holding(append(each, "granular")...), 4},
		{"fields=200", fields(200, false), holding("granular", "granular:specification"), 1},
		{"hostile=1250", quarter, holding("granular"), 1},
		{"hostile=5000", all, holding("granular"), 1},
		{"hostile=5000/at-the-limit", all, holding(append(each, "granular")...), 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decide(context.Background(), c.held, Review{Generic: update, Requirements: c.requirements}, Limits{Parallel: c.parallel}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChecks reports the number of checks of a review, including those for the generic permission and the marker. It also reports
// two numbers for comparison: the number of verbs in all chains, and the fewest checks that any order needs.
func BenchmarkChecks(b *testing.B) {
	ten, each := labels(10)
	mixed := append(fields(10, true), ten...)
	for _, c := range []struct {
		name         string
		requirements []Requirement
		held         []string
	}{
		{"one-field-at-its-own-verb", []Requirement{need("replicas", "*", "specification", "scale")}, []string{"granular:scale"}},
		{"ten-labels-of-ten-prefixes", ten, each},
		{"all-by-the-root", mixed, []string{"granular:*"}},
		{"half-at-the-second-level", mixed, append([]string{"granular:specification"}, each...)},
		{"denied-at-first", append([]Requirement{need("apiVersion", "*")}, mixed...), each},
		{"denied-at-one-label-of-ten", ten, each[:9]},
		{"200-fields-under-one-verb", fields(200, false), []string{"granular:specification"}},
		{"generic-with-a-barrier", append([]Requirement{need("node", "*", "specification", "|", "nodeAssignment")}, mixed...), []string{"update", "granular:nodeAssignment"}},
	} {
		held := holding(append(c.held, "granular")...)
		review := Review{Generic: update, Requirements: c.requirements}
		entry, needs := entryOf(review, held)
		b.Run(c.name, func(b *testing.B) {
			checks := 0
			for b.Loop() {
				d, err := Decide(context.Background(), held, review, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				checks = len(d.Checks)
			}
			b.ReportMetric(float64(checks), "checks/op")
			b.ReportMetric(float64(entry), "entry-checks/op")
			b.ReportMetric(float64(distinctVerbs(needs)), "distinct-verbs/op")
			b.ReportMetric(float64(entry+bestOrder(needs, held)), "best-order/op")
		})
	}
}

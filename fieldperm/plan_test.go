package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// answers is an authorizer with fixed answers that records the order of the checks.
type answers struct {
	answer map[string]AuthorizerDecision
	fails  map[string]error
	mu     sync.Mutex
	asked  []string
}

func (a *answers) Authorize(_ context.Context, verb string, generic bool) (AuthorizerDecision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprint(verb, generic))
	return a.answer[verb], a.fails[verb]
}

// reviews draws random reviews whose chains have much in common: prefixes, whole chains, verbs at different levels.
type reviews struct{ *rand.Rand }

func (d reviews) verb(of int) verbs.Verb {
	v, err := verbs.New(fmt.Sprintf("v%d", d.IntN(of)))
	if err != nil {
		panic(err)
	}
	if d.IntN(4) == 0 {
		v, _ = v.WithParameter(fmt.Sprint(d.IntN(3)))
	}
	return v
}

func (d reviews) requirements(of int) []Requirement {
	n := d.IntN(10)
	if d.IntN(8) == 0 {
		n = d.IntN(60)
	}
	var out []Requirement
	for i := range n {
		r := Requirement{Path: fieldpath.Path{}.Field(fmt.Sprint(i)), Operation: Modified, Barrier: -1}
		more := d.IntN(4)
		switch k := d.IntN(10); {
		case k < 2 && i > 0:
			r.Chain, r.Barrier, more = out[i-1].Chain, out[i-1].Barrier, d.IntN(2)
		case k < 7 && i > 0:
			above := out[d.IntN(i)].Chain
			from := 0
			if d.IntN(3) == 0 {
				from = d.IntN(len(above) + 1) // The same verbs, at other levels.
			}
			r.Chain = slices.Clone(above[from : from+d.IntN(len(above)-from+1)])
		case k < 9:
			r.Chain = []verbs.Verb{verbs.All()}
		}
		for range more {
			r.Chain = append(r.Chain, d.verb(of))
		}
		if d.IntN(30) == 0 {
			for range 20 {
				r.Chain = append(r.Chain, d.verb(of))
			}
		}
		if d.IntN(5) == 0 {
			r.Barrier = d.IntN(len(r.Chain) + 1)
		}
		if r.Barrier > len(r.Chain) {
			r.Barrier = -1
		}
		out = append(out, r)
	}
	return out
}

// answers holds each verb with a probability. A few answers have failures and authorizer names.
func (d reviews) answers(requirements []Requirement) *answers {
	a := &answers{answer: map[string]AuthorizerDecision{}, fails: map[string]error{}}
	held, faults := []float64{0.05, 0.3, 0.6, 0.95}[d.IntN(4)], d.IntN(6) == 0
	draw := func(verb string, held float64) {
		answer := AuthorizerDecision{Outcome: OutcomeOf(d.Float64() < held), Reason: "because"}
		switch d.IntN(8) {
		case 0:
			answer.By = "freeze"
			if !answer.Allowed() {
				answer.Outcome = Deny
			}
		case 1:
			answer.By, answer.Reason = "fieldperm", verbs.Prefix+" the marker"
			if !answer.Allowed() {
				answer.Outcome = Deny
			}
		}
		a.answer[verb] = answer
		if faults && d.IntN(12) == 0 {
			answer.Failure = fmt.Errorf("%s: passed over", verb)
			a.answer[verb] = answer
		}
		if faults && d.IntN(20) == 0 {
			a.fails[verb] = fmt.Errorf("%s: failed", verb)
		}
	}
	draw("update", 0.2)
	draw("patch", 0.1)
	draw(verbs.Marker, 0.9)
	for i := range requirements {
		for _, v := range requirements[i].Chain {
			if _, drawn := a.answer[v.String()]; !drawn {
				draw(v.String(), held)
			}
		}
	}
	return a
}

func (d reviews) review() (Review, Limits) {
	of := []int{2, 5, 12, 60}[d.IntN(4)]
	review := Review{Generic: [][]string{update, {"create"}, nil}[max(d.IntN(9)-6, 0)], Requirements: d.requirements(of), UncoveredOnly: d.IntN(8) == 0}
	limits := Limits{Parallel: d.IntN(5), MaxChecks: []int{0, 0, 1000, 1 + d.IntN(12)}[d.IntN(4)]}
	if d.IntN(20) == 0 {
		limits.Parallel = 20
	}
	return review, limits
}

// TestP1_P2_P3_P5_DecideAgreesWithTheReference compares decisions, errors and the order of checks with those of the reference.
func TestP1_P2_P3_P5_DecideAgreesWithTheReference(t *testing.T) {
	d := reviews{rand.New(rand.NewPCG(3617, 5))}
	draws := 30000
	if testing.Short() {
		draws = 3000
	}
	seen := map[string]int{}
	for n := range draws {
		review, limits := d.review()
		one := d.answers(review.Requirements)
		other := &answers{answer: one.answer, fails: one.fails}
		got, gotErr := Decide(context.Background(), one, review, limits)
		want, wantErr := decideByReference(context.Background(), other, review, limits)
		if !reflect.DeepEqual(got, want) || !errors.Is(gotErr, wantErr) || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("draw %d, %+v, limits %+v, answers %+v:\n%q\ngot  %+v %+v, %v\nwant %+v %+v, %v", n, review, limits, one.answer, renderAll(review.Requirements), got, got.Denial, gotErr, want, want.Denial, wantErr)
		}
		if limits.Parallel <= 1 && !slices.Equal(one.asked, other.asked) {
			t.Fatalf("draw %d: asked %q, the reference %q", n, one.asked, other.asked)
		}
		if got.Denial != nil && got.Denial.Requirement != want.Denial.Requirement {
			t.Fatalf("draw %d: the denial is about another requirement: %+v", n, got.Denial)
		}
		switch {
		case gotErr != nil:
			seen["error"]++
		case got.Allowed:
			seen["allowed "+string(got.Mode)]++
		case got.Denial.Requirement == nil:
			seen["no entry"]++
		case got.Denial.Checks > 0:
			seen["cost"]++
		case got.Denial.Refusal != nil:
			seen["refused"]++
		default:
			seen["denied "+string(got.Mode)]++
		}
	}
	for _, outcome := range []string{"error", "allowed generic", "allowed granular", "allowed uncovered", "no entry", "cost", "refused", "denied granular", "denied uncovered"} {
		if seen[outcome] < draws/200 {
			t.Errorf("%d of %d draws come to %q: they prove little: %v", seen[outcome], draws, outcome, seen)
		}
	}
}

// TestSpeed_DecideAllocatesNoMoreForManyFieldsUnderOneVerb than for one field: the plan has one group for them.
func TestSpeed_DecideAllocatesNoMoreForManyFieldsUnderOneVerb(t *testing.T) {
	held := holding("granular", "granular:specification")
	for _, parallel := range []int{0, 1, 4} {
		allocations := func(n int) float64 {
			requirements := fields(n, false)
			return testing.AllocsPerRun(100, func() {
				if d, err := Decide(context.Background(), held, Review{Generic: update, Requirements: requirements}, Limits{Parallel: parallel}); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			})
		}
		if one, many := allocations(1), allocations(200); many > one {
			t.Errorf("parallel %d: %v allocations for one field, %v for 200", parallel, one, many)
		}
	}
}

// An authorizer that allows an invalid verb covers nothing by it.
func TestZeroVerbCoversNothing(t *testing.T) {
	for _, chain := range [][]verbs.Verb{{{}}, {verbs.All(), {}}, nil} {
		d, err := Decide(context.Background(), holding("granular", ""), Review{Generic: update, Requirements: []Requirement{{Chain: chain, Barrier: -1}}}, Limits{})
		if err != nil || d.Allowed || d.Denial == nil || d.CoveredBy[0] != "" {
			t.Errorf("chain %q: %+v, %v", chain, d, err)
		}
	}
}

package sets_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// C2: what is remembered about resources, shared between sets and not evaluated changes no barrier. Sets and requests are drawn.
func TestC2_BarriersAreThoseOfADirectEvaluation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func(from ...string) string { return from[r.IntN(len(from))] }
	resources := []string{"pods", "pods/status", "pods/binding", "pods/resize", "deployments", "deployments/status", "deployments/scale", "bindings", "events", "'*'", "'*/status'", "'*/scale'"}
	expressions := []string{
		"request.namespace == 'a'", "request.namespace != 'a'", "request.operation == 'UPDATE'", "request.operation != 'CREATE'", "request.?subResource.orValue('') == 'status'",
		"!has(request.subResource)", "has(request.requestSubResource) && request.requestSubResource == 'resize'", "[request].exists(r, r.operation == 'UPDATE')",
		"request.userInfo.groups.exists(g, g == 'x')", "request.name == 'a'", "request.operation == 'UPDATE' && request.name == 'b'", "false", "request.options.none == 1",
	}
	differs := map[bool]int{}
	for range 12 {
		var documents []string
		for range 1 + r.IntN(6) {
			var conditions []string
			for i := range r.IntN(3) {
				conditions = append(conditions, fmt.Sprintf("{name: c%d, expression: %q}", i, one(expressions...)))
			}
			set := setOf(one("'granular:metadata'", "'granular:*'", "'granular:labels', 'granular:specification'"), "{apiGroups: ["+one("''", "apps", "'*'", "'', apps, events.k8s.io")+"], resources: ["+one(resources...)+"]}", strings.Join(conditions, ", "))
			documents = append(documents, strings.TrimSuffix(set, "}\n")+", validationActions: ["+one("", "", "Warn", "Deny, Audit", "Audit, Warn")+"]}\n")
		}
		s, _ := compileFew(t, documents...)
		compiled, _ := sets.Compile(schematest.Documents(t, documents...).Uncovered, nil, nil)
		for range 400 {
			ref := schema.ResourceRef{Group: one("", "apps", "events.k8s.io"), Version: "v1", Resource: one("pods", "deployments", "bindings", "events"), Subresource: one("", "", "status", "scale", "binding", "resize")}
			fields := map[string]any{"namespace": one("a", "b"), "name": one("a", "b"), "operation": one("CREATE", "UPDATE"), "userInfo": map[string]any{"groups": []any{one("x", "y")}}}
			if ref.Subresource != "" {
				fields["subResource"], fields["requestSubResource"] = ref.Subresource, ref.Subresource
			}
			fault := [...]error{nil, nil, nil, errors.New("broken")}[r.IntN(4)]
			request := func() (map[string]any, error) { return fields, fault }
			for _, action := range []v1alpha1.ValidationAction{v1alpha1.ValidationDeny, v1alpha1.ValidationWarn} {
				var got schema.VerbSet
				if action == v1alpha1.ValidationDeny {
					got, _ = s.Uncovered(t.Context(), ref, request)
				} else {
					got, _ = s.Tried(t.Context(), ref, request, action)
				}
				want := compiled.Directly(t.Context(), ref, request, action)
				if !equivalent(got, want) {
					t.Fatalf("%s at %v with %v: %v, want %v; the sets are\n%s", action, ref, fields, got, want, strings.Join(documents, "---\n"))
				}
				differs[len(got) > 0]++
			}
		}
	}
	if min(differs[true], differs[false]) < 500 {
		t.Errorf("barriers, and none: %v: draw others", differs)
	}
}

// equivalent reports whether two results hold for the same changes. Barriers for owners in the status hold for the same ones with and
// without OwnersOnly.
func equivalent(a, b schema.VerbSet) bool {
	plain := func(set schema.VerbSet) schema.VerbSet {
		out := maps.Clone(set)
		for v, e := range out {
			e.OwnersOnly = e.OwnersOnly && !e.StatusOnly
			out[v] = e
		}
		return out
	}
	return maps.Equal(plain(a), plain(b))
}

// C2: the request is read once, and only if there is a condition. If it cannot be read, conditions count as true.
func TestC2_TheRequestIsReadOnceForAllConditions(t *testing.T) {
	const onNamespace, never = `{name: a, expression: "request.namespace == 'a'"}`, `{name: c, expression: "1 == 2"}`
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		conditions string
		err        error
		holds      bool
		reads      int
	}{
		"none":                            {"", nil, true, 0},
		"one":                             {onNamespace, nil, false, 1},
		"one, and the request is broken":  {onNamespace, broken, true, 1},
		"none, and the request is broken": {"", broken, true, 0},
		"two":                             {never + ", " + onNamespace, nil, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf("'granular:metadata'", deployments, c.conditions)
			s, errs := compileFew(t, set, set, set)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			reads := 0
			got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, func() (map[string]any, error) {
				reads++
				return map[string]any{"namespace": "b"}, c.err
			})
			if (len(got.ForValues()) > 0) != c.holds || reads != c.reads {
				t.Errorf("it holds: %t; the request was read %d times; want %t, %d", len(got.ForValues()) > 0, reads, c.holds, c.reads)
			}
			if errors.Is(err, broken) != (reads > 0 && c.err != nil) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// C2: without a request, every condition counts as true.
func TestC2_ConditionsWithoutInputCountAsTrue(t *testing.T) {
	for _, expression := range []string{"request.namespace == 'a'", "has(request.namespace)", "false"} {
		s, errs := compileFew(t, setOf("'granular:metadata'", deployments, fmt.Sprintf("{name: a, expression: %q}", expression)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, nil)
		if len(got.ForValues()) == 0 || err != nil {
			t.Errorf("%s: %v, %v", expression, got, err)
		}
	}
}

// A client may name any resource: what is remembered about them has a bound, and requests do not change what others get.
func TestUncovered_IsSafeForAllResourcesAtOnce(t *testing.T) {
	s, errs := sets.Compile(schematest.Documents(t, setOf("'granular:*'", "{apiGroups: ['*'], resources: ['*']}", "")).Uncovered, nil, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	deployments := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			for j := range 1000 {
				ref := schema.ResourceRef{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("things%d", i*1000+j)}
				for _, at := range []schema.ResourceRef{ref, deployments} {
					got, err := s.Matching(t.Context(), at, nil, v1alpha1.ValidationDeny)
					if err != nil || len(got) != 1 {
						t.Errorf("%v: %v, %v", at, got, err)
					}
					if both := got.Plus(schema.VerbSet{all(t, "granular:spec"): {}}); len(both) != 2 {
						t.Errorf("both: %v", both)
					}
				}
			}
		})
	}
	running.Wait()
	if n := s.Remembered(); n == 0 || n > 1024 {
		t.Errorf("%d resources are remembered", n)
	}
}

// The result of Plus is new unless one of the sets is empty.
func TestC2_PlusChangesNeitherSet(t *testing.T) {
	v, w := all(t, "granular:a"), all(t, "granular:b")
	a, b := schema.VerbSet{v: {OwnersOnly: true}}, schema.VerbSet{v: {}, w: {}}
	if got := a.Plus(b); !maps.Equal(got, b) || len(a) != 1 || !a[v].OwnersOnly || len(b) != 2 {
		t.Errorf("%v of %v and %v", got, a, b)
	}
	for _, got := range []schema.VerbSet{a.Plus(nil), schema.VerbSet(nil).Plus(a)} {
		if !slices.Equal(slices.Collect(maps.Keys(got)), slices.Collect(maps.Keys(a))) {
			t.Errorf("with an empty set: %v", got)
		}
	}
}

// P4: a loop in a match condition ends with the context, and the condition counts as true.
func TestP4_AMatchConditionEndsWithItsContext(t *testing.T) {
	s, errs := compileFew(t, setOf("'granular:metadata'", deployments, `{name: a, expression: "request.userInfo.groups.exists(g, g == 'x')"}`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	groups := make([]any, 10_000)
	for i := range groups {
		groups[i] = "y"
	}
	request := func() (map[string]any, error) {
		return map[string]any{"userInfo": map[string]any{"groups": groups}}, nil
	}
	at := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}
	if got, err := s.Uncovered(t.Context(), at, request); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := s.Uncovered(ended, at, request); len(got) == 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v, %v", got, err)
	}
}

package schema_test

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

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// C2: what is remembered about resources, shared between sets and not evaluated changes no barrier. Sets and requests are drawn.
func TestC2_BarriersAreThoseOfADirectEvaluation(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func(from ...string) string { return from[r.IntN(len(from))] }
	// Kinds have to be known, or no condition on an object is evaluated.
	resources := []string{"pods", "pods/status", "pods/binding", "pods/resize", "deployments", "deployments/status", "deployments/scale", "bindings", "events", "'*'", "'*/status'", "'*/scale'"}
	expressions := []string{
		"request.namespace == 'a'", "request.namespace != 'a'", "request.operation == 'UPDATE'", "request.operation != 'CREATE'", "request.?subResource.orValue('') == 'status'",
		"!has(request.subResource)", "has(request.requestSubResource) && request.requestSubResource == 'resize'", "[request].exists(r, r.operation == 'UPDATE')",
		"request.userInfo.groups.exists(g, g == 'x')", "object.metadata.name == 'a'", "has(object.metadata.labels) && oldObject == null", "oldObject != null",
		"object.?spec.replicas.orValue(0) == 3", "request.operation == 'UPDATE' && object.metadata.name == 'b'", "false", "request.options.none == 1",
	}
	kinds := []schema.Request{{Kind: gvkOf("", "Pod")}, {Kind: gvkOf("apps", "Deployment")}, {Kind: gvkOf("autoscaling", "Scale")}, {Kind: gvkOf("", "Binding")}, {Kind: gvkOf("", "Event")}}
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
		s, _ := compileFew(t, documents...) // A set without effect is a fault, and is in force nevertheless.
		for range 400 {
			ref := schema.ResourceRef{Group: one("", "apps", "events.k8s.io"), Version: "v1", Resource: one("pods", "deployments", "bindings", "events"), Subresource: one("", "", "status", "scale", "binding", "resize")}
			request := kinds[r.IntN(len(kinds))]
			if r.IntN(4) == 0 {
				request.SentAs = &kinds[r.IntN(len(kinds))].Kind
			}
			fields := map[string]any{"namespace": one("a", "b"), "operation": one("CREATE", "UPDATE"), "userInfo": map[string]any{"groups": []any{one("x", "y")}}}
			if ref.Subresource != "" {
				fields["subResource"], fields["requestSubResource"] = ref.Subresource, ref.Subresource
			}
			object := map[string]any{"metadata": map[string]any{"name": one("a", "b")}, "spec": map[string]any{"replicas": int64(r.IntN(2) * 3)}}
			var old any
			if r.IntN(2) == 0 {
				old = object
			}
			fault := [...]error{nil, nil, nil, errors.New("broken")}
			fieldsErr, objectsErr := fault[r.IntN(4)], fault[r.IntN(4)]
			request.Fields = func() (map[string]any, error) { return fields, fieldsErr }
			request.Objects = func() (any, any, error) { return object, old, objectsErr }
			for _, action := range []v1alpha1.ValidationAction{v1alpha1.ValidationDeny, v1alpha1.ValidationWarn} {
				var got schema.VerbSet
				if action == v1alpha1.ValidationDeny {
					got, _ = s.Uncovered(t.Context(), ref, request)
				} else {
					got, _ = s.Tried(t.Context(), ref, request, action)
				}
				want := s.Directly(t.Context(), ref, request, action)
				if !equivalent(got, want) {
					t.Fatalf("%s of %v at %v with %v: %v, want %v; the sets are\n%s", action, request.Kind, ref, fields, got, want, strings.Join(documents, "---\n"))
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

func gvkOf(group, kind string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// C2: a condition on the request is evaluated whatever the objects are. The inputs are read once, and only if a condition needs them.
func TestC2_ConditionsReadOnlyWhatTheyName(t *testing.T) {
	const onNamespace, onName, never = `{name: a, expression: "request.namespace == 'a'"}`, `{name: b, expression: "object.metadata.name == 'a'"}`, `{name: c, expression: "1 == 2"}`
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		conditions      string
		fields, objects error
		// holds, readsFields and readsObjects are the expected result and numbers of calls.
		holds                     bool
		readsFields, readsObjects int
	}{
		"none":                                 {"", nil, nil, true, 0, 0},
		"of the request":                       {onNamespace, nil, nil, false, 1, 0},
		"of the request, which is broken":      {onNamespace, broken, nil, true, 1, 0},
		"of the object":                        {onName, nil, nil, false, 0, 1},
		"of the object, which is broken":       {onName, nil, broken, true, 0, 1},
		"of both, the object is broken":        {onName + ", " + onNamespace, nil, broken, false, 1, 1},
		"of both, the request is broken":       {onName + ", " + onNamespace, broken, nil, false, 1, 1},
		"of nothing":                           {never, broken, broken, false, 0, 0},
		"of the object, and one that is false": {never + ", " + onName, nil, nil, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf("'granular:metadata'", deployments, c.conditions)
			s, errs := compileFew(t, set, set, set)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			fields, objects := 0, 0
			got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, schema.Request{
				Kind:   gvkOf("apps", "Deployment"),
				Fields: func() (map[string]any, error) { fields++; return map[string]any{"namespace": "b"}, c.fields },
				Objects: func() (any, any, error) {
					objects++
					return map[string]any{"metadata": map[string]any{"name": "b"}}, nil, c.objects
				},
			})
			if (len(got.ForValues()) > 0) != c.holds || fields != c.readsFields || objects != c.readsObjects {
				t.Errorf("it holds: %t; the request was read %d times, the objects %d times; want %t, %d, %d", len(got.ForValues()) > 0, fields, objects, c.holds, c.readsFields, c.readsObjects)
			}
			if isBroken := fields > 0 && c.fields != nil || objects > 0 && c.objects != nil; errors.Is(err, broken) != isBroken {
				t.Errorf("error %v", err)
			}
		})
	}
}

// C2: without the input, every condition that would read it counts as true.
func TestC2_ConditionsWithoutInputCountAsTrue(t *testing.T) {
	for _, expression := range []string{"request.namespace == 'a'", "has(request.namespace)", "!has(request.namespace) && false", "has(object.metadata)", "object != null && false"} {
		s, errs := compileFew(t, setOf("'granular:metadata'", deployments, fmt.Sprintf("{name: a, expression: %q}", expression)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, schema.Request{Kind: gvkOf("apps", "Deployment")})
		if len(got.ForValues()) == 0 || err != nil {
			t.Errorf("%s: %v, %v", expression, got, err)
		}
	}
}

// A client may name any resource: what is remembered about them has a bound, and requests do not change what others get.
func TestUncovered_IsSafeForAllResourcesAtOnce(t *testing.T) {
	s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: ['*'], resources: ['*']}", ""))
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
					got, err := s.Uncovered(t.Context(), at, schema.Request{})
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
	request := schema.Request{Kind: gvkOf("apps", "Deployment"), Fields: func() (map[string]any, error) {
		return map[string]any{"userInfo": map[string]any{"groups": groups}}, nil
	}}
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

// C2: a condition that hands the whole request on may read any field of it.
func TestC2_AConditionOnTheWholeRequestReadsAllOfIt(t *testing.T) {
	for expression, want := range map[string]bool{
		"request.namespace == 'a' && [request].exists(r, r.operation == 'UPDATE')": true,
		"request.namespace == 'a' && [request].exists(r, r.operation == 'DELETE')": false,
	} {
		s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [''], resources: [pods]}", fmt.Sprintf("{name: a, expression: %q}", expression)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		request := schema.Request{Kind: gvkOf("", "Binding"), Fields: func() (map[string]any, error) {
			return map[string]any{"namespace": "a", "operation": "CREATE"}, nil
		}}
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: "binding"}, request)
		if holds := len(got.ForValues()) == 1; err != nil || holds != want {
			t.Errorf("%s: it holds: %t, %v; want %t", expression, holds, err, want)
		}
	}
}

package sets_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

// compileFew is compileWith for only the kinds of these tests.
func compileFew(t *testing.T, documents ...string) (*schema.Schema, []error) {
	t.Helper()
	docs := schematest.Only(schematest.Documents(t, documents...), "Deployment", "Scale", "Pod", "Binding", "Eviction", "ServiceAccount", "TokenRequest", "Event", "HorizontalPodAutoscaler")
	// The catalogue's entries for other kinds do not apply here.
	s, errs := compile.Compile(docs)
	return s, slices.DeleteFunc(errs, func(err error) bool { return !strings.HasPrefix(err.Error(), "doc") })
}

// ofAlice is a request of alice in the namespace shop.
func ofAlice() (map[string]any, error) {
	return map[string]any{"userInfo": map[string]any{"username": "alice"}, "namespace": "shop", "operation": "CREATE"}, nil
}

// C2: a match condition reads the request without its objects. What depends on objects is a ConditionalPolicy.
func TestC2_AMatchConditionDoesNotReadObjects(t *testing.T) {
	for expression, want := range map[string]string{
		"request.userInfo.username == 'object'":                            "",
		"request.userInfo.groups.exists(g, g in ['oldObject', 'x'])":       "",
		"request.operation == 'UPDATE' && request.name != 'web'":           "",
		"request.namespace == 'shop' && request.options.dryRun == ['All']": "",
		"object.metadata.name == 'x'":                                      "effect Deny",
		"has(object.metadata) && false":                                    "effect Deny",
		".object == 1":                                                     "effect Deny",
		"oldObject == null":                                                "effect Deny",
		"request.object.metadata.name == 'x'":                              "effect Deny",
		"has(request.oldObject)":                                           "effect Deny",
		"[{'a': object}].exists(o, o.a == 1)":                              "effect Deny",
		"params.x == 1 || variables.y == 2":                                "effect Deny",
		"namespaceObject.metadata.name == 'x'":                             "effect Deny",
		"nothing == 1":                                                     "undeclared reference to 'nothing'",
		"request.nothing == 1":                                             "undefined field 'nothing'",
		"object.metadata.name":                                             "effect Deny",
	} {
		s, errs := compileFew(t, setOf("'granular:scale'", deployments, fmt.Sprintf("{name: a, expression: %q}", expression)))
		if text := fmt.Sprint(errs); (len(errs) > 0) != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", expression, text, want)
		}
		if want == "" {
			continue
		}
		// A set with such a condition that exists nevertheless holds as if it were true.
		if got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, ofAlice); err != nil || len(got.ForValues()) != 1 {
			t.Errorf("%s: %v, %v", expression, got, err)
		}
	}
}

// D8: a write of the object can change owners in the status. So a set on the status holds for these owners in such a write, and for
// nothing else.
func TestD8_C2_ASetOnTheStatusHoldsForItsOwners(t *testing.T) {
	s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [apps], resources: [deployments/status]}", ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for subresource, want := range map[string]schema.VerbSet{
		"":       {verbs.All(): {StatusOnly: true}},
		"status": {verbs.All(): {}},
		"scale":  nil,
	} {
		ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: subresource}
		got, err := s.Uncovered(t.Context(), ref, ofAlice)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", subresource, got, err, want)
		}
	}
}

// D8: a write of the object can also change owners of the fields that a subresource writes, and these owners cannot be told apart from
// others.
func TestD8_C2_ASetOnAPartHoldsForItsOwners(t *testing.T) {
	for resource, want := range map[string]schema.VerbSet{"pods/resize": {verbs.All(): {OwnersOnly: true}}, "'*/resize'": {verbs.All(): {OwnersOnly: true}}, "pods/binding": nil, "pods/eviction": nil} {
		s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [''], resources: ["+resource+"]}", ""))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, at := range []string{"", "ephemeralcontainers"} {
			got, err := s.Uncovered(t.Context(), schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: at}, ofAlice)
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%s, at %q: %v, %v; want %v", resource, at, got, err, want)
			}
		}
	}
}

// C5: a condition on the endpoint is evaluated as if the owners in the status changed through the status endpoint.
func TestC5_C2_AConditionThatNamesTheEndpointHoldsForOwnersOfTheStatus(t *testing.T) {
	for resources, want := range map[string]schema.VerbSet{"deployments": {verbs.All(): {StatusOnly: true}}, "deployments/status": {verbs.All(): {StatusOnly: true}}, "deployments/scale": nil} {
		s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [apps], resources: ["+resources+"]}", `{name: a, expression: "has(request.subResource) && request.subResource == 'status'"}`))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, ofAlice)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", resources, got, err, want)
		}
	}
}

// Admission sees a Binding as CREATE, and it changes a Pod that it does not show. A condition on changes of Pods holds for it.
func TestC2_AConditionOnChangesHoldsForChangesOfStoredObjects(t *testing.T) {
	var (
		pods, podBinding = schema.ResourceRef{Version: "v1", Resource: "pods"}, schema.ResourceRef{Version: "v1", Resource: "pods", Subresource: "binding"}
		bindings         = schema.ResourceRef{Version: "v1", Resource: "bindings"}
	)
	for name, c := range map[string]struct {
		resources, expression string
		// created and bound say whether the set holds for the creation of a Pod and for a Binding.
		created, bound bool
	}{
		"of changes":               {"pods", "request.operation == 'UPDATE'", false, true},
		"of changes, by a Binding": {"pods/binding", "request.operation == 'UPDATE'", false, true},
		"of all":                   {"'*'", "request.operation != 'CREATE'", false, true},
		"of creations":             {"pods", "request.operation == 'CREATE'", true, true},
		"on the user of a change":  {"pods", "request.operation == 'UPDATE' && request.userInfo.username == 'alice'", false, true},
		"of another's changes":     {"pods", "request.operation == 'UPDATE' && request.userInfo.username == 'bob'", false, false},
		"of deletions":             {"pods", "request.operation == 'DELETE'", false, false},
		"handed on":                {"pods", "[request].exists(r, r.operation == 'UPDATE')", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFew(t, setOf("'granular:*'", "{apiGroups: [''], resources: ["+c.resources+"]}", fmt.Sprintf("{name: a, expression: %q}", c.expression)))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for _, at := range []struct {
				ref  schema.ResourceRef
				want bool
			}{{pods, c.created}, {podBinding, c.bound}, {bindings, c.bound}} {
				got, err := s.Uncovered(t.Context(), at.ref, ofAlice)
				if holds := len(got.ForValues()) == 1; err != nil || holds != at.want {
					t.Errorf("%v: it holds: %t, %v; want %t", at.ref, holds, err, at.want)
				}
			}
		})
	}
}

// C2: an absent number of replicas in a Scale is 0.
func TestC2_AConditionOnAScaleSeesTheReplicas(t *testing.T) {
	s, errs := compileFew(t, schemaOf("apps", "Deployment", "{path: .spec.replicas, verb: scale, excludedWhen: 'self == 0 || oldSelf == 0'}"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ref := schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale"}
	scale := runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	k, err := s.KindFor(scale, ref)
	if err != nil {
		t.Fatal(err)
	}
	bars := func(oldSelf, self any) bool {
		return slices.ContainsFunc(k.Root.Map().Child("spec").Map().Child("replicas").Permissions(), func(p *schema.Permission) bool {
			return p.Conditional() && p.Bars(t.Context(), oldSelf, self)
		})
	}
	if !bars(int64(3), nil) || !bars(nil, int64(3)) || bars(int64(3), int64(2)) {
		t.Errorf("to 0 %t, from 0 %t, from 3 to 2 %t", bars(int64(3), nil), bars(nil, int64(3)), bars(int64(3), int64(2)))
	}
}

func all(t *testing.T, text string) verbs.Verb {
	t.Helper()
	v, err := verbs.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

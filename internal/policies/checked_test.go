package policies

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// mayAllow reports whether an update of a Deployment in a version can become allowed.
func mayAllow(t *testing.T, l *Live, version string) bool {
	t.Helper()
	set, err := l.Set()
	if err != nil {
		t.Fatal(err)
	}
	attributes := asked()
	attributes.APIVersion = version
	decision := set.ConditionsAwareAuthorize(t.Context(), attributes)
	return decision.PossibleDecisions().Has(1)
}

// TestK5_AVersionIsUnfitUntilItIsChecked: a version that is served after the policy, and one whose type is not published yet, are not checked, so
// that an Allow does not allow there and a Deny denies.
func TestK5_AVersionIsUnfitUntilItIsChecked(t *testing.T) {
	const condition = "!has(object.spec.paused) || !object.spec.paused"
	for _, effect := range []v1alpha1.PolicyEffect{v1alpha1.PolicyAllow, v1alpha1.PolicyDeny} {
		var published map[string]*spec.Schema
		api := &apiServer{objects: []*unstructured.Unstructured{stored(t, "p", 1, about(effect, condition))}}
		api.types = func(endpoint.Ref) (map[string]*spec.Schema, error) { return published, nil }
		l := live(t, api)
		for _, step := range []struct {
			name      string
			published map[string]*spec.Schema
			checked   bool
		}{
			{"not served", nil, false},
			{"the type is not published", map[string]*spec.Schema{"v1": nil}, false},
			{"published", mustTypes(t), true},
			{"published, and served in another version", map[string]*spec.Schema{"v1": mustTypes(t)["v1"], "v2": nil}, true},
		} {
			published = step.published
			l.TypesChanged()
			refreshed(t, l)
			if effect == v1alpha1.PolicyAllow {
				if mayAllow(t, l, "v1") != step.checked || mayAllow(t, l, "v2") || mayAllow(t, l, "v3") {
					t.Errorf("%s: %t, %t, %t", step.name, mayAllow(t, l, "v1"), mayAllow(t, l, "v2"), mayAllow(t, l, "v3"))
				}
				continue
			}
			set, _ := l.Set()
			for version, unchecked := range map[string]bool{"v1": !step.checked, "v2": true} {
				attributes := asked()
				attributes.APIVersion = version
				if got := set.ConditionsAwareAuthorize(t.Context(), attributes); got.IsDeny() != unchecked {
					t.Errorf("deny, %s, %s: %s", step.name, version, got)
				}
			}
		}
	}
}

func mustTypes(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	out, err := typed(endpoint.Ref{Group: "apps", Resource: "deployments"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestK5_AnUnfitTypeChangesNothingElse: also after a start, when no earlier form is known. Who may change the type of one resource must not decide
// about others.
func TestK5_AnUnfitTypeChangesNothingElse(t *testing.T) {
	spec := about(v1alpha1.PolicyAllow, "has(object.spec.paused)")
	l := live(t, &apiServer{types: typed, objects: []*unstructured.Unstructured{stored(t, "p", 1, spec)}})
	refreshed(t, l)
	if state := l.Objects()[0]; len(state.Faults) != 1 || !mayAllow(t, l, "v1") || mayAllow(t, l, "v1beta1") {
		t.Errorf("%+v: v1 %t, v1beta1 %t", state, mayAllow(t, l, "v1"), mayAllow(t, l, "v1beta1"))
	}
}

// TestK5_TypesThatCannotBeRead: what was checked before counts until they can be, and the refresh is repeated.
func TestK5_TypesThatCannotBeRead(t *testing.T) {
	down := false
	api := &apiServer{objects: []*unstructured.Unstructured{stored(t, "p", 1, about(v1alpha1.PolicyAllow, "has(object.spec.replicas)"))}}
	api.types = func(ref endpoint.Ref) (map[string]*spec.Schema, error) {
		if down {
			return nil, errors.New("boom")
		}
		return typed(ref)
	}
	l := live(t, api)
	refreshed(t, l)
	down = true
	l.TypesChanged()
	if err := l.Refresh(t.Context()); err == nil || !mayAllow(t, l, "v1") || mayAllow(t, l, "v2") {
		t.Errorf("%v, %t, %t", err, mayAllow(t, l, "v1"), mayAllow(t, l, "v2"))
	}
	if outcome(t, l) != fieldperm.Allow {
		t.Errorf("in admission: %v", outcome(t, l))
	}
	down = false
	refreshed(t, l)
	if state := l.Objects()[0]; len(state.Faults)+len(state.Unmatched) > 0 {
		t.Errorf("%+v", state)
	}
}

// TestK5_TypesOfDefinitions: a new version has a type as soon as its definition is known.
func TestK5_TypesOfDefinitions(t *testing.T) {
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gads.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"kind":"Gad","plural":"gads","singular":"gad","listKind":"GadList"},"versions":[
		{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"privileged":{"type":"boolean"}}}}}}},
		{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
		{"name":"v3","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)); err != nil {
		t.Fatal(err)
	}
	scale := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	types := Defined(func() ([]*sources.Definition, error) {
		return sources.NewDefinitions([]*unstructured.Unstructured{definition.DeepCopy()})
	}, func(ref endpoint.Ref) (map[string]*spec.Schema, error) {
		if ref.Subresource == "scale" {
			return map[string]*spec.Schema{"v1": scale}, nil
		}
		return map[string]*spec.Schema{"published": nil}, nil
	})
	gads := endpoint.Ref{Group: "example.com", Resource: "gads"}
	of, err := types(gads)
	if err != nil || len(of) != 2 || of["v1"] == nil || of["v2"] == nil {
		t.Fatalf("%v, %v", of, err)
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if _, ok := of["v1"].Properties[field]; !ok {
			t.Errorf("the type has no %s", field)
		}
	}
	if _, ok := of["v1"].Properties["metadata"].Properties["labels"]; !ok {
		t.Errorf("metadata is not resolved: %v", of["v1"].Properties["metadata"])
	}
	for subresource, want := range map[string]int{"status": 1, "scale": 1, "other": 0} {
		if of, err := types(endpoint.Ref{Group: "example.com", Resource: "gads", Subresource: subresource}); err != nil || len(of) != want || want == 1 && of["v1"] == nil {
			t.Errorf("%s: %v, %v", subresource, of, err)
		}
	}
	if of, err := types(endpoint.Ref{Group: "apps", Resource: "deployments"}); err != nil || len(of) != 1 {
		t.Errorf("of a built-in kind: %v, %v", of, err)
	}
	c := newCompiler(newExpressions(t), types)
	if versions, err := c.typesOf(gads); err != nil || versions["v1"] == untyped || versions["v1"] == nil || versions["v2"] == nil {
		t.Errorf("%v, %v", versions, err)
	}
}

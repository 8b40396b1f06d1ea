package schema

import (
	"errors"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"
)

// The tests of this file are here because test/mutation broke the code and nothing else noticed.

func compiledKind(t *testing.T, s *Schema, name string) *Kind {
	t.Helper()
	k, err := s.Kind(kindOf(name))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestC2_ABarrierIsNotSharedWithTheSameVerbElsewhere(t *testing.T) {
	for _, barred := range []v1alpha1.FieldPermission{
		{Path: ".spec.replicas", Verb: "scale", Excluded: true},
		{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self == 1"},
	} {
		free := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"}
		s, errs := Compile(things(t, document("a.yaml", "A", RankAdministrator, barred), document("b.yaml", "B", RankAdministrator, free)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if !compiledKind(t, s, "A").MayBar() || compiledKind(t, s, "B").MayBar() {
			t.Errorf("%+v: A bars %v, B bars %v, want only A", barred, compiledKind(t, s, "A").MayBar(), compiledKind(t, s, "B").MayBar())
		}
	}
}

func TestCompile_ANamedKeyKeepsTheVerbOfAllValues(t *testing.T) {
	s, errs := Compile(things(t, document("f.yaml", "A", RankAdministrator,
		v1alpha1.FieldPermission{Path: ".spec.labels", ParameterSource: "key"},
		v1alpha1.FieldPermission{Path: ".spec.labels[*]", Verb: "label", ParameterizedBy: "key"},
		v1alpha1.FieldPermission{Path: `.spec.labels["a"]`, Verb: "special"})))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var names []string
	for _, p := range compiledKind(t, s, "A").Root.Map().Child("spec").Map().Child("labels").Map().Child("a").Permissions() {
		names = append(names, p.Base().Name())
	}
	if got := strings.Join(names, " "); got != "label special" {
		t.Errorf("the key has verbs %q, want label and special", got)
	}
}

func TestCompile_ParameterExpression(t *testing.T) {
	s, errs := Compile(things(t, document("f.yaml", "A", RankAdministrator,
		v1alpha1.FieldPermission{Path: ".spec.labels", ParameterSource: "key"},
		v1alpha1.FieldPermission{Path: ".spec.labels[*]", Verb: "label", ParameterizedBy: "key", ParameterExpression: "self.split('.')[1]"})))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	p := compiledKind(t, s, "A").Root.Map().Child("spec").Map().Child("labels").Map().Child("any").Permissions()[0]
	for value, want := range map[string]string{"a.b": "granular:label(b)", "no dot": ""} {
		v, ok := p.Parameterized(func(string) (string, bool) { return value, true })
		if v.String() != want || ok != (want != "") {
			t.Errorf("%q makes %q, %v; want %q", value, v, ok, want)
		}
	}
}

func TestCompile_ADocumentHoldsForItsVersionsOnly(t *testing.T) {
	other := document("f.yaml", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"})
	other.Versions = []string{"v2"}
	s, _ := Compile(things(t, other))
	if got := compiledKind(t, s, "A").Root.Map().Child("spec").Map().Child("replicas").Permissions(); len(got) > 0 {
		t.Errorf("v1 has the verb %q of v2", got[0].Base())
	}
}

func TestC2_AConditionAboveTheReplicasAlwaysHoldsOnScale(t *testing.T) {
	parser, err := typed.NewParser(scaleTypes)
	if err != nil {
		t.Fatal(err)
	}
	docs := things(t, document("f.yaml", "A", RankAdministrator,
		v1alpha1.FieldPermission{Path: ".spec", Verb: "all", ExcludedWhen: "self.labels.size() == 100"},
		v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "size", ExcludedWhen: "self == 100"}))
	docs.Topologies = append(docs.Topologies, Topology{Source: "scale", Types: &parser.Schema, Kinds: map[runtimeschema.GroupVersionKind]string{scaleKind: "scale"}})
	s, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	k, err := s.KindFor(scaleKind, ResourceRef{Group: "example.com", Resource: "as", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range k.Root.Map().Child("spec").Map().Child("replicas").Permissions() {
		// A Scale holds the replicas, not the labels.
		if conditional := p.Base().Name() == "size"; p.Conditional() != conditional || p.Bars(t.Context(), nil, int64(1)) == conditional {
			t.Errorf("%s: conditional %v, bars %v", p.Base(), p.Conditional(), p.Bars(t.Context(), nil, int64(1)))
		}
	}
}

func TestC2_ABarrierForAKindToComeIsReportedAndHolds(t *testing.T) {
	docs := things(t)
	docs.Uncovered = []UncoveredDocument{{Source: "u.yaml", Set: v1alpha1.UncoveredPermissionSet{Spec: v1alpha1.UncoveredPermissionSetSpec{UncoveredPermissions: []string{"granular:toCome"}}}}}
	s, errs := Compile(docs)
	var e *Error
	if len(errs) != 1 || !errors.As(errs[0], &e) || !e.Unmatched {
		t.Errorf("errors %v, want one that is unmatched", errs)
	}
	v, err := verbs.Parse("granular:toCome")
	if err != nil {
		t.Fatal(err)
	}
	if set, err := s.Uncovered(t.Context(), ResourceRef{Resource: "pods"}, Request{}); err != nil || !set.Has(v) {
		t.Errorf("uncovered %v, %v, want %s", set, err, v)
	}
}

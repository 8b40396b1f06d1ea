package schema

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
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
		v, ok := p.Verb(func(string) (string, bool) { return value, true })
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

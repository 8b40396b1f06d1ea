package compile

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/sets"
)

const thingTypes = `types:
- name: a
  map: {fields: [{name: spec, type: {namedType: spec}}]}
- name: b
  map: {fields: [{name: spec, type: {namedType: spec}}]}
- name: spec
  map:
    fields:
    - {name: replicas, type: {scalar: numeric}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: frozen, type: {map: {elementRelationship: atomic, elementType: {scalar: string}}}}
    - {name: parts, type: {list: {elementRelationship: associative, keys: [name], elementType: {namedType: part}}}}
- name: part
  map: {fields: [{name: name, type: {scalar: string}}, {name: size, type: {scalar: numeric}}]}
`

func kindOf(name string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
}

func things(t *testing.T, documents ...PermissionDocument) Documents {
	t.Helper()
	parser, err := typed.NewParser(thingTypes)
	if err != nil {
		t.Fatal(err)
	}
	return Documents{Permissions: documents, Topologies: []Topology{{Source: "types", Types: &parser.Schema,
		Kinds: map[runtimeschema.GroupVersionKind]string{kindOf("A"): "a", kindOf("B"): "b"}}}}
}

func document(source, kind string, rank Rank, permissions ...v1alpha1.FieldPermission) PermissionDocument {
	d := PermissionDocument{Source: source, Rank: rank, Group: "example.com", Kind: kind}
	for _, p := range permissions {
		d.Entries = append(d.Entries, Entry{FieldPermission: p, Pointer: "/" + p.Path})
	}
	return d
}

func compiledKind(t *testing.T, s *schema.Schema, name string) *schema.Kind {
	t.Helper()
	k, err := s.Kind(kindOf(name))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestCompile_Refuses(t *testing.T) {
	type fp = v1alpha1.FieldPermission
	for _, c := range []struct {
		name string
		in   []fp
		want string
	}{
		{"a bad verb", []fp{{Path: ".spec.replicas", Verb: "Scale"}}, `f.yaml:/.spec.replicas: ".spec.replicas": verb "Scale" is not lowerCamelCase: use "scale"`},
		{"an unknown path", []fp{{Path: ".spec.replica", Verb: "scale"}}, `path ".spec.replica" does not exist: its siblings are frozen, labels, parts, replicas`},
		{"an item of no list", []fp{{Path: ".spec.replicas[*]", Verb: "scale"}}, `path ".spec.replicas[*]" does not exist`},
		{"a path that is none", []fp{{Path: "spec", Verb: "x"}}, `unexpected "spec"`},
		{"a parameter that nothing emits", []fp{{Path: ".spec.replicas", Verb: "scale", ParameterizedBy: "key"}}, `nothing on the path emits parameter "key"`},
		{"a parameter of another branch", []fp{{Path: ".spec.labels", ParameterSource: "key"}, {Path: ".spec.replicas", Verb: "scale", ParameterizedBy: "key"}}, `nothing on the path emits parameter "key"`},
		{"a source on a struct", []fp{{Path: ".spec", ParameterSource: "key"}}, `emits no parameter "key"`},
		{"a source on an atomic map", []fp{{Path: ".spec.frozen", ParameterSource: "key"}}, `emits no parameter "key"`},
		{"CEL that does not compile", []fp{{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self ="}}, "does not compile"},
		{"CEL that is no boolean", []fp{{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "1"}}, "yields int: make it yield bool"},
		{"a parameter expression that is no string", []fp{{Path: ".spec.labels", ParameterSource: "key"}, {Path: ".spec.labels[*]", Verb: "label", ParameterizedBy: "key", ParameterExpression: "size(self)"}}, "yields int: make it yield string"},
		{"the same path twice", []fp{{Path: ".spec.replicas", Verb: "scale"}, {Path: `["spec"].replicas`, Verb: "x"}}, "stands twice in this document"},
		{"the verb of creations", []fp{{Path: ".spec", Verb: "creation"}}, `verb "creation" is the verb of the existence of every object: use the noun of the field`},
		{"a verb at the root", []fp{{Path: "", Verb: "all"}}, "the root's verb is always granular:*"},
		{"an entry that says nothing", []fp{{Path: ".spec"}}, "says nothing"},
		{"a barrier without a verb", []fp{{Path: ".spec", Excluded: true}}, "has no verb"},
		{"two exclusions", []fp{{Path: ".spec.replicas", Verb: "x", Excluded: true, ExcludedWhen: "true"}}, "keep one of excluded and excludedWhen"},
		{"an unknown treatment", []fp{{Path: ".spec.labels", ParameterSource: "key"}, {Path: ".spec.labels[*]", Verb: "label", ParameterizedBy: "key", ParameterTreatment: "prefix"}}, `parameter treatment "prefix" is unknown`},
		{"a treatment without a parameter", []fp{{Path: ".spec", Verb: "x", ParameterTreatment: "slash-delimited-prefix"}}, "add parameterizedBy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, errs := Compile(things(t, document("f.yaml", "A", RankAdministrator, c.in...)))
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) || !strings.HasPrefix(errs[0].Error(), "f.yaml:/") {
				t.Errorf("errors %v, want one with %q", errs, c.want)
			}
			if _, err := s.Kind(kindOf("A")); err == nil {
				t.Error("the kind is in force with a fault")
			}
			if _, err := s.Kind(kindOf("B")); err != nil {
				t.Errorf("another kind is not served: %v", err)
			}
		})
	}
}

// TestCompile_AFaultFailsEveryKindThatSharesIt proves that a shared node does not hide a fault from the second kind.
func TestCompile_AFaultFailsEveryKindThatSharesIt(t *testing.T) {
	bad := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self ="}
	s, _ := Compile(things(t, document("a.yaml", "A", RankAdministrator, bad), document("b.yaml", "B", RankAdministrator, bad)))
	for _, name := range []string{"A", "B"} {
		if _, err := s.Kind(kindOf(name)); err == nil {
			t.Errorf("kind %s is served without its barrier", name)
		}
	}
}

// TestCompile_AFaultFailsEveryKindOfItsDocument proves it for a kind that was compiled before the fault was found.
func TestCompile_AFaultFailsEveryKindOfItsDocument(t *testing.T) {
	good, bad := v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale", Excluded: true}, v1alpha1.FieldPermission{Path: ".spec.replica", Verb: "scale"}
	s, _ := Compile(things(t, document("f.yaml", "A", RankAdministrator, good), document("f.yaml", "B", RankAdministrator, bad)))
	for _, name := range []string{"A", "B"} {
		if _, err := s.Kind(kindOf(name)); err == nil {
			t.Errorf("kind %s is served, and its document has a fault", name)
		}
	}
}

// A kind whose source has a fault names that fault, and not the fault of the source of another version.
func TestCompile_AFailedKindNamesTheFaultOfItsOwnSource(t *testing.T) {
	bad := []Entry{{FieldPermission: v1alpha1.FieldPermission{Path: ".spec.replica", Verb: "scale"}}}
	var docs Documents
	for _, version := range []string{"v1", "v2"} {
		of := func(kind string) runtimeschema.GroupVersionKind {
			return runtimeschema.GroupVersionKind{Group: "example.com", Version: version, Kind: kind}
		}
		types := things(t).Topologies[0]
		types.Source, types.TypePermissions = version+".json", map[string][]Entry{"b": bad}
		types.Kinds = map[runtimeschema.GroupVersionKind]string{of("A"): "a", of("B"): "b"}
		types.Lossy = map[runtimeschema.GroupVersionKind]string{of("A"): "elsewhere"}
		docs.Topologies = append(docs.Topologies, types)
	}
	s, _ := Compile(docs)
	for gvk, err := range s.Failed() {
		if want := gvk.Version + ".json:"; !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails because of %v, want a fault of %s", gvk, err, want)
		}
	}
	if len(s.Failed()) != 4 {
		t.Errorf("%v fail, want both versions of both kinds", s.Failed())
	}
}

func TestCompile_LaterSourcesWinPerNode(t *testing.T) {
	low := document("catalogue", "A", RankCatalogue, v1alpha1.FieldPermission{Path: ".spec", Verb: "low"}, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"})
	high := document("admin", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec", Verb: "high"})
	s, errs := Compile(things(t, high, low))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	k, err := s.Kind(kindOf("A"))
	if err != nil {
		t.Fatal(err)
	}
	spec := k.Root.Map().Child("spec")
	if got := spec.Permissions()[0].Base().Name(); got != "high" {
		t.Errorf("spec has verb %q", got)
	}
	if got := spec.Map().Child("replicas").Permissions()[0].Base().Name(); got != "scale" {
		t.Errorf("replicas has verb %q", got)
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

func TestCompile_ARoleCannotBeTakenAway(t *testing.T) {
	role := document("catalogue", "A", RankCatalogue, v1alpha1.FieldPermission{Path: ".spec.replicas"})
	role.Entries[0].Role = schema.RoleServerWritten
	s, errs := Compile(things(t, role, document("admin", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"})))
	k, err := s.Kind(kindOf("A"))
	if err != nil {
		t.Fatal(errs, err)
	}
	if got := k.Root.Map().Child("spec").Map().Child("replicas").Role(); got != schema.RoleServerWritten {
		t.Errorf("role %q", got)
	}
}

func TestCompile_AnUnmatchedKindIsNoFaultOfOthers(t *testing.T) {
	s, errs := Compile(things(t, document("f.yaml", "Other", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec", Verb: "x"})))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `kind "Other" of group "example.com" is not known`) {
		t.Errorf("errors %v", errs)
	}
	if _, err := s.Kind(kindOf("A")); err != nil {
		t.Error(err)
	}
}

func TestUncovered_Refuses(t *testing.T) {
	scale := document("f.yaml", "A", RankAdministrator, v1alpha1.FieldPermission{Path: ".spec.replicas", Verb: "scale"},
		v1alpha1.FieldPermission{Path: ".spec.labels", ParameterSource: "key"}, v1alpha1.FieldPermission{Path: ".spec.labels[*]", Verb: "label", ParameterizedBy: "key"})
	for verb, want := range map[string]string{
		"granular": "is the marker", "update": "is not granular",
	} {
		docs := things(t, scale)
		docs.Uncovered = []sets.Document{{Source: "u.yaml", Set: v1alpha1.UncoveredPermissionSet{Spec: v1alpha1.UncoveredPermissionSetSpec{UncoveredPermissions: []string{verb}}}}}
		if _, errs := Compile(docs); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) || !strings.HasPrefix(errs[0].Error(), "u.yaml:/spec/uncoveredPermissions/0: ") {
			t.Errorf("%s: %v, want %q", verb, errs, want)
		}
	}
}

func TestUncovered_Matching(t *testing.T) {
	spec := func(conditions ...string) v1alpha1.UncoveredPermissionSetSpec {
		s := v1alpha1.UncoveredPermissionSetSpec{UncoveredPermissions: []string{"granular:*"}, Resources: []v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"namespaces", "*/scale"}}}}
		for _, c := range conditions {
			s.MatchConditions = append(s.MatchConditions, v1alpha1.MatchCondition{Name: "c", Expression: c})
		}
		return s
	}
	for _, c := range []struct {
		name string
		spec v1alpha1.UncoveredPermissionSetSpec
		ref  schema.ResourceRef
		want bool
	}{
		{"its resource", spec(), schema.ResourceRef{Resource: "namespaces"}, true},
		{"a subresource writes the same object", spec(), schema.ResourceRef{Resource: "namespaces", Subresource: "finalize"}, true},
		{"a subresource of any resource", spec(), schema.ResourceRef{Resource: "pods", Subresource: "scale"}, true},
		{"another resource", spec(), schema.ResourceRef{Resource: "pods"}, false},
		{"another group", spec(), schema.ResourceRef{Group: "apps", Resource: "namespaces"}, false},
		{"a condition that is true", spec("request.userInfo.username == 'alice'"), schema.ResourceRef{Resource: "namespaces"}, true},
		{"a condition that is false", spec("request.userInfo.username == 'bob'"), schema.ResourceRef{Resource: "namespaces"}, false},
		{"a condition that fails counts as true", spec("request.options.nothing == 1"), schema.ResourceRef{Resource: "namespaces"}, true},
		{"a failure does not outweigh a false", spec("request.options.nothing == 1", "false"), schema.ResourceRef{Resource: "namespaces"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := things(t)
			docs.Uncovered = []sets.Document{{Source: "u.yaml", Set: v1alpha1.UncoveredPermissionSet{Spec: c.spec}}}
			s, errs := Compile(docs)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			set, _ := s.Uncovered(t.Context(), c.ref, ofAlice)
			if got := len(set.ForValues()) > 0; got != c.want {
				t.Errorf("uncovered %v, want %v", got, c.want)
			}
		})
	}
}

// ofAlice is a request of alice.
func ofAlice() (map[string]any, error) {
	return map[string]any{"userInfo": map[string]any{"username": "alice"}}, nil
}

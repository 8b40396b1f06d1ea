package compile

import (
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// nodeAt returns the node at a path of a kind.
func nodeAt(t *testing.T, k *schema.Kind, path string) *schema.Node {
	t.Helper()
	var out *schema.Node
	k.Guarded(1000, func(p fieldpath.Pattern, n *schema.Node) {
		if p.String() == path {
			out = n
		}
	})
	if out == nil {
		t.Fatalf("%s has no verb at %s", k.Kind, path)
	}
	return out
}

// Two documents say the same of two kinds. A traced compile tells them apart; any other shares what they say.
func TestTraced_NamesTheSourceOfEachVerb(t *testing.T) {
	type fp = v1alpha1.FieldPermission
	same := fp{Path: ".spec.replicas", Verb: "scale", ExcludedWhen: "self == 1"}
	annotation := document("CustomResourceDefinition a", "A", RankCustomResource, same)
	annotation.Form = schema.FormAnnotation
	administrator := document("PermissionSchema b", "B", RankAdministrator, same)
	administrator.Form = schema.FormPermissionSchema
	docs := things(t, document("catalogue/a.yaml#A", "A", RankCatalogue, fp{Path: ".spec", Verb: "specification"}), annotation, administrator)

	plain, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	a, b := compiledKind(t, plain, "A"), compiledKind(t, plain, "B")
	if one, two := nodeAt(t, a, ".spec.replicas"), nodeAt(t, b, ".spec.replicas"); one != two || one.Permissions()[0].Origins() != nil || a.Trace() != nil {
		t.Error("a compile that is not traced does not share, or keeps a trace")
	}

	traced, errs := Compile(Documents{Traced: true}.Append(docs))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		kind, path string
		want       schema.Origin
	}{
		{"A", ".spec", schema.Origin{Form: schema.FormCatalogue}},
		{"A", ".spec.replicas", schema.Origin{Form: schema.FormAnnotation, Source: "CustomResourceDefinition a"}},
		{"B", ".spec.replicas", schema.Origin{Form: schema.FormPermissionSchema, Source: "PermissionSchema b"}},
	} {
		p := nodeAt(t, compiledKind(t, traced, c.kind), c.path).Permissions()[0]
		if !slices.Equal(p.Origins(), []schema.Origin{c.want}) {
			t.Errorf("%s %s: %v, want %v", c.kind, c.path, p.Origins(), c.want)
		}
		if c.path != ".spec" && (!slices.Equal(p.ExcludedWhen(), []string{"self == 1"}) || p.Excluded()) {
			t.Errorf("%s %s: barrier when %q, always %t", c.kind, c.path, p.ExcludedWhen(), p.Excluded())
		}
	}
	if root := compiledKind(t, traced, "A").Root.Permissions()[0]; root.Origins() != nil {
		t.Errorf("the root's verb comes from %v", root.Origins())
	}
}

// A barrier that a document about another version adds has both sources.
func TestTraced_ABarrierOfAnotherVersionHasItsSource(t *testing.T) {
	type fp = v1alpha1.FieldPermission
	mine := document("PermissionSchema mine", "A", RankAdministrator, fp{Path: ".spec.replicas", Verb: "scale"})
	theirs := document("PermissionSchema theirs", "A", RankAdministrator, fp{Path: ".spec.replicas", Verb: "scale", Excluded: true})
	mine.Form, theirs.Form, mine.Versions, theirs.Versions = schema.FormPermissionSchema, schema.FormPermissionSchema, []string{"v1"}, []string{"v2"}
	docs := things(t, mine, theirs)
	docs.Traced = true
	second := kindOf("A")
	second.Version = "v2"
	docs.Topologies[0].Kinds[second] = "a"
	s, errs := Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	p := nodeAt(t, compiledKind(t, s, "A"), ".spec.replicas").Permissions()[0]
	want := []schema.Origin{{Form: schema.FormPermissionSchema, Source: "PermissionSchema mine"}, {Form: schema.FormPermissionSchema, Source: "PermissionSchema theirs"}}
	if !p.Excluded() || !slices.Equal(p.Origins(), want) {
		t.Errorf("barrier %t of %v, want %v", p.Excluded(), p.Origins(), want)
	}
}

func TestTraced_Types(t *testing.T) {
	docs := things(t)
	docs.Traced = true
	s, _ := Compile(docs)
	trace := compiledKind(t, s, "A").Trace()
	if trace.Resource.Resource != "as" || !trace.Served {
		t.Errorf("%+v", trace)
	}
	for path, want := range map[string]string{
		"": "a", ".spec": "spec", ".spec.replicas": "number", ".spec.labels": "map[string]string", `.spec.labels["x"]`: "string",
		".spec.parts": "[]part", ".spec.parts[*]": "part", ".spec.parts[*].name": "string", ".spec.none": "any", ".spec.none.below": "any",
	} {
		p, err := fieldpath.ParsePattern(path)
		if err != nil {
			t.Fatal(err)
		}
		of := trace.Type
		for _, e := range p {
			of = of.At(e)
		}
		if of.String() != want {
			t.Errorf("%s: %s, want %s", path, of, want)
		}
	}
}

func TestNode_ChildrenAreInOrderAndEndAtUnknownFields(t *testing.T) {
	s, _ := Compile(things(t))
	var got []string
	for e, child := range compiledKind(t, s, "A").Root.Map().Child("spec").Children() {
		got = append(got, e.String())
		for range child.Children() {
			break
		}
	}
	if want := []string{".frozen", ".labels", ".parts", ".replicas"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for e := range schema.Unknown().Children() {
		t.Errorf("unknown fields have the child %s", e)
	}
}

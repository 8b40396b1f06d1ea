package schema

import (
	"fmt"
	"testing"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// chainOfTypes has a type with two fields of the next type, and so on, so that it unfolds to 2^64 fields. leaf is the last type.
func chainOfTypes(leaf smd.Atom) shape {
	const depth = 64
	types := &smd.Schema{}
	for i := range depth {
		next := smd.TypeRef{NamedType: new(string)}
		*next.NamedType = fmt.Sprint(i + 1)
		types.Types = append(types.Types, smd.TypeDef{Name: fmt.Sprint(i), Atom: smd.Atom{Map: &smd.Map{Fields: []smd.StructField{{Name: "a", Type: next}, {Name: "b", Type: next}}}}})
	}
	types.Types = append(types.Types, smd.TypeDef{Name: fmt.Sprint(depth), Atom: leaf})
	first := "0"
	return shape{types, smd.TypeRef{NamedType: &first}}
}

// Types that many fields share are compared once.
func TestShape_SharedTypesAreComparedOnce(t *testing.T) {
	text, number := smd.String, smd.Numeric
	one, two, three := chainOfTypes(smd.Atom{Scalar: &text}), chainOfTypes(smd.Atom{Scalar: &text}), chainOfTypes(smd.Atom{Scalar: &number})
	if !one.same(two) {
		t.Error("the same types differ")
	}
	if one.same(three) || three.same(one) {
		t.Error("types with another leaf are the same")
	}
}

// A type that one field uses as a whole and another field in parts counts as two.
func TestShape_ATypeThatIsReferredToInTwoWays(t *testing.T) {
	of := func(second smd.ElementRelationship) shape {
		name, first, text := "t", "root", smd.String
		fields := []smd.StructField{{Name: "a", Type: smd.TypeRef{NamedType: &name}}, {Name: "b", Type: smd.TypeRef{NamedType: &name, ElementRelationship: &second}}}
		return shape{&smd.Schema{Types: []smd.TypeDef{
			{Name: first, Atom: smd.Atom{Map: &smd.Map{Fields: fields}}},
			{Name: name, Atom: smd.Atom{Map: &smd.Map{ElementType: smd.TypeRef{Inlined: smd.Atom{Scalar: &text}}, ElementRelationship: smd.Separable}}},
		}}, smd.TypeRef{NamedType: &first}}
	}
	if of(smd.Atomic).same(of(smd.Separable)) {
		t.Error("an atomic map is the same as one that is compared key by key")
	}
}

// C7: a verb that a body gets from an object stands apart from the verbs above it in the body.
func TestC7_AVerbOfAnObjectStandsApartInABody(t *testing.T) {
	leaf := func(p ...*Permission) *Node { return &Node{scalar: true, unbarred: true, united: true, permissions: p} }
	tree := func(n *Node) *Node {
		for _, name := range []string{"replicas", "spec"} {
			n = &Node{mapping: &Map{fields: map[string]*Node{name: n, "other": plain}}, unbarred: true, united: !n.StandsApart() && n.united}
		}
		return n
	}
	g := &graft{body: tree(leaf())}
	object := tree(leaf(&Permission{apart: true}))
	from, err := fieldpath.ParsePattern(".spec.replicas")
	if err != nil {
		t.Fatal(err)
	}
	_, at, ok := reach(object, from)
	if !ok {
		t.Fatal("the object has no replicas")
	}
	g.onto = []grafted{{from, []*Node{at}}}
	if root := g.root(); root == nil || !root.MayStandApartWithin() || !root.mapping.fields["spec"].MayStandApartWithin() {
		t.Error("nothing below the body stands apart")
	}
}

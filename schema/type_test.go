package schema

import (
	"fmt"
	"testing"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// TestSame_SharedTypesAreComparedOnce: of the last one there are 2^40 fields.
func TestSame_SharedTypesAreComparedOnce(t *testing.T) {
	chain := func() *smd.Schema {
		out := &smd.Schema{}
		for i := range 40 {
			next := smd.TypeRef{NamedType: new(fmt.Sprint(i + 1))}
			out.Types = append(out.Types, smd.TypeDef{Name: fmt.Sprint(i), Atom: smd.Atom{Map: &smd.Map{Fields: []smd.StructField{{Name: "a", Type: next}, {Name: "b", Type: next}}}}})
		}
		text := smd.String
		out.Types = append(out.Types, smd.TypeDef{Name: "40", Atom: smd.Atom{Scalar: &text}})
		return out
	}
	first := smd.TypeRef{NamedType: new("0")}
	if !(Type{chain(), first}).Same(Type{chain(), first}) {
		t.Error("two readings of one document differ")
	}
}

// TestSame_ARelationOfItsOwnMakesAnotherType: a reference may make atomic what it refers to.
func TestSame_ARelationOfItsOwnMakesAnotherType(t *testing.T) {
	atomic := smd.Atomic
	types := func(second smd.TypeRef) *smd.Schema {
		shared := smd.TypeRef{NamedType: new("shared")}
		text := smd.String
		return &smd.Schema{Types: []smd.TypeDef{
			{Name: "root", Atom: smd.Atom{Map: &smd.Map{Fields: []smd.StructField{{Name: "a", Type: shared}, {Name: "b", Type: second}}}}},
			{Name: "shared", Atom: smd.Atom{Map: &smd.Map{ElementType: smd.TypeRef{Inlined: smd.Atom{Scalar: &text}}}}},
		}}
	}
	root := smd.TypeRef{NamedType: new("root")}
	plain, other := types(smd.TypeRef{NamedType: new("shared")}), types(smd.TypeRef{NamedType: new("shared"), ElementRelationship: &atomic})
	if (Type{plain, root}).Same(Type{other, root}) || (Type{other, root}).Same(Type{plain, root}) || !(Type{other, root}).Same(Type{types(other.Types[0].Map.Fields[1].Type), root}) {
		t.Error("an atomic field is the same as one that is not, or differs from itself")
	}
}

package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// shape is a type of a topology, for comparison with types of other topologies. The zero shape is that of a field that does not exist.
type shape struct {
	types *smd.Schema
	ref   smd.TypeRef
}

func (s shape) exists() bool { return s.types != nil }

func shapeOf(gvk runtimeschema.GroupVersionKind, owners map[runtimeschema.GroupVersionKind]*Topology) shape {
	t := owners[gvk]
	name := t.Kinds[gvk]
	return shape{t.Types, smd.TypeRef{NamedType: &name}}
}

// at returns the type at a path.
func (s shape) at(path fieldpath.Pattern) shape {
	for _, e := range path {
		if !s.exists() {
			return shape{}
		}
		atom, _ := s.types.Resolve(s.ref)
		field, isField := smd.StructField{}, false
		if atom.Map != nil && !e.Any {
			field, isField = fieldOf(atom.Map, e.Name)
		}
		switch {
		case isField:
			s.ref = field.Type
		case e.Any && atom.List != nil:
			s.ref = atom.List.ElementType
		case atom.Map != nil && hasValues(atom.Map):
			s.ref = atom.Map.ElementType
		default:
			return shape{}
		}
	}
	return s
}

// fieldOf returns a field of a struct. Map.FindField would keep an index of the fields as long as the type lives: a walk of all types would
// leave one for each, which takes more memory than the compiled schema.
func fieldOf(m *smd.Map, name string) (smd.StructField, bool) {
	for i := range m.Fields {
		if m.Fields[i].Name == name {
			return m.Fields[i], true
		}
	}
	return smd.StructField{}, false
}

// fields returns the names of the fields of a struct.
func (s shape) fields() map[string]bool {
	out := map[string]bool{}
	if atom, _ := s.types.Resolve(s.ref); atom.Map != nil {
		for _, f := range atom.Map.Fields {
			out[f.Name] = true
		}
	}
	return out
}

// pair is a pair of references to named types.
type pair struct {
	one, other                        string
	relationOfOne, relationOfTheOther smd.ElementRelationship
}

// same reports whether both types exist, accept the same values and compare them alike. Defaults are ignored.
func (s shape) same(other shape) bool { return s.sameBut(other, map[pair]bool{}) }

// sameBut is same for recursive types. met are the pairs that are already compared or being compared. One difference ends the comparison,
// so no pair needs a second comparison.
func (s shape) sameBut(other shape, met map[pair]bool) bool {
	if !s.exists() || !other.exists() {
		return false
	}
	if s.ref.NamedType != nil && other.ref.NamedType != nil {
		at := pair{*s.ref.NamedType, *other.ref.NamedType, relation(s.ref), relation(other.ref)}
		if s.types == other.types && s.ref.Equals(&other.ref) || met[at] {
			return true
		}
		met[at] = true
	}
	one, known := s.types.Resolve(s.ref)
	two, alsoKnown := other.types.Resolve(other.ref)
	if known != alsoKnown || (one.Scalar == nil) != (two.Scalar == nil) || (one.List == nil) != (two.List == nil) || (one.Map == nil) != (two.Map == nil) {
		return false
	}
	below := func(a, b smd.TypeRef) bool { return shape{s.types, a}.sameBut(shape{other.types, b}, met) }
	if one.Scalar != nil && *one.Scalar != *two.Scalar {
		return false
	}
	if a, b := one.List, two.List; a != nil && (!sameItems(a, b) || !below(a.ElementType, b.ElementType)) {
		return false
	}
	if one.Map == nil {
		return true
	}
	a, b := one.Map, two.Map
	if a.ElementRelationship != b.ElementRelationship || len(a.Fields) != len(b.Fields) || hasValues(a) != hasValues(b) || hasValues(a) && !below(a.ElementType, b.ElementType) {
		return false
	}
	return !slices.ContainsFunc(a.Fields, func(f smd.StructField) bool {
		theirs, declared := b.FindField(f.Name)
		return !declared || !below(f.Type, theirs.Type)
	})
}

// sameItems reports whether both lists identify their items by the same keys.
func sameItems(a, b *smd.List) bool {
	return a.ElementRelationship == b.ElementRelationship && slices.Equal(a.Keys, b.Keys)
}

func relation(ref smd.TypeRef) smd.ElementRelationship {
	if ref.ElementRelationship == nil {
		return ""
	}
	return *ref.ElementRelationship
}

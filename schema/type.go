package schema

import (
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Type is the declared type of a place, in the terms of structured-merge-diff. The zero Type is that of a place without a declared type.
type Type struct {
	types *smd.Schema
	ref   smd.TypeRef
}

// NewType returns a type of a schema of types.
func NewType(types *smd.Schema, ref smd.TypeRef) Type { return Type{types, ref} }

// Exists reports whether a type is declared.
func (t Type) Exists() bool { return t.types != nil }

// IsNamed reports whether the type has a name, so that it may contain itself.
func (t Type) IsNamed() bool { return t.ref.NamedType != nil }

// Atom returns the forms of values of the type.
func (t Type) Atom() smd.Atom {
	atom, _ := t.types.Resolve(t.ref)
	return atom
}

// TypeID identifies a type, so that a walk through a type that contains itself ends. Two types that differ have different IDs.
type TypeID struct {
	types               *smd.Schema
	named, relationship string
	inlined             smd.Atom
}

// ID returns the identity of the type.
func (t Type) ID() TypeID {
	id := TypeID{types: t.types, relationship: string(relation(t.ref)), inlined: t.ref.Inlined}
	if t.ref.NamedType != nil {
		id.named = *t.ref.NamedType
	}
	return id
}

// At returns the type at a path below, or the zero Type if nothing is declared there.
func (t Type) At(path ...fieldpath.Element) Type {
	for _, e := range path {
		if !t.Exists() {
			return Type{}
		}
		atom, _ := t.types.Resolve(t.ref)
		field, isField := smd.StructField{}, false
		if atom.Map != nil && !e.Any {
			field, isField = fieldOf(atom.Map, e.Name)
		}
		switch {
		case isField:
			t.ref = field.Type
		case e.Any && atom.List != nil:
			t.ref = atom.List.ElementType
		case atom.Map != nil && HasValues(atom.Map):
			t.ref = atom.Map.ElementType
		default:
			return Type{}
		}
	}
	return t
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

// Fields returns the names of the fields of a struct.
func (t Type) Fields() map[string]bool {
	out := map[string]bool{}
	if atom, _ := t.types.Resolve(t.ref); atom.Map != nil {
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

// Same reports whether both types exist, accept the same values and compare them alike. Defaults are ignored.
func (t Type) Same(other Type) bool { return t.sameBut(other, map[pair]bool{}) }

// sameBut is Same for recursive types. met are the pairs that are already compared or being compared. One difference ends the comparison,
// so no pair needs a second comparison.
func (t Type) sameBut(other Type, met map[pair]bool) bool {
	if !t.Exists() || !other.Exists() {
		return false
	}
	if t.ref.NamedType != nil && other.ref.NamedType != nil {
		at := pair{*t.ref.NamedType, *other.ref.NamedType, relation(t.ref), relation(other.ref)}
		if t.types == other.types && t.ref.Equals(&other.ref) || met[at] {
			return true
		}
		met[at] = true
	}
	one, known := t.types.Resolve(t.ref)
	two, alsoKnown := other.types.Resolve(other.ref)
	if known != alsoKnown || (one.Scalar == nil) != (two.Scalar == nil) || (one.List == nil) != (two.List == nil) || (one.Map == nil) != (two.Map == nil) {
		return false
	}
	below := func(a, b smd.TypeRef) bool { return Type{t.types, a}.sameBut(Type{other.types, b}, met) }
	if one.Scalar != nil && *one.Scalar != *two.Scalar {
		return false
	}
	if a, b := one.List, two.List; a != nil && (!SameItems(a, b) || !below(a.ElementType, b.ElementType)) {
		return false
	}
	if one.Map == nil {
		return true
	}
	a, b := one.Map, two.Map
	if a.ElementRelationship != b.ElementRelationship || len(a.Fields) != len(b.Fields) || HasValues(a) != HasValues(b) || HasValues(a) && !below(a.ElementType, b.ElementType) {
		return false
	}
	return !slices.ContainsFunc(a.Fields, func(f smd.StructField) bool {
		theirs, declared := b.FindField(f.Name)
		return !declared || !below(f.Type, theirs.Type)
	})
}

// SameItems reports whether both lists identify their items by the same keys.
func SameItems(a, b *smd.List) bool {
	return a.ElementRelationship == b.ElementRelationship && slices.Equal(a.Keys, b.Keys)
}

func relation(ref smd.TypeRef) smd.ElementRelationship {
	if ref.ElementRelationship == nil {
		return ""
	}
	return *ref.ElementRelationship
}

// HasValues reports whether an object type is a map and not a struct. structured-merge-diff gives a struct no element type.
func HasValues(m *smd.Map) bool {
	return m.ElementType.NamedType != nil || m.ElementType.Inlined != (smd.Atom{}) || len(m.Fields) == 0
}

// These are the words for types without a name of their own.
const (
	anyType     = "any"
	objectType  = "Object"
	numericType = "number"
)

// IsAny reports whether the type allows values of any form.
func (t Type) IsAny() bool { return t.String() == anyType }

// String returns the type as kubectl explain writes it: string, []Container, map[string]string, Object. Numbers are "number", because
// the types do not tell integers from others.
func (t Type) String() string {
	if !t.Exists() {
		return anyType
	}
	atom, ok := t.types.Resolve(t.ref)
	name := t.name()
	switch {
	case !ok || atom == (smd.Atom{}) || atom.Scalar != nil && (atom.List != nil || atom.Map != nil):
		return anyType
	case atom.List != nil:
		return "[]" + t.At(fieldpath.Element{Any: true}).String()
	case atom.Map != nil && HasValues(atom.Map) && len(atom.Map.Fields) == 0:
		return "map[string]" + Type{t.types, atom.Map.ElementType}.String()
	case atom.Map != nil:
		if name == "" {
			return objectType
		}
		return name
	}
	switch scalar := *atom.Scalar; {
	case name != "":
		return name
	case scalar == smd.Numeric:
		return numericType
	case scalar == smd.Untyped || scalar == "":
		return anyType
	default:
		return string(scalar)
	}
}

// name returns the last part of the name of a named type, "" if it has none. A name with slashes or with the marks of the converter is one
// that nobody chose.
func (t Type) name() string {
	if t.ref.NamedType == nil || strings.HasPrefix(*t.ref.NamedType, "__") {
		return ""
	}
	name := *t.ref.NamedType
	return name[strings.LastIndexByte(name, '.')+1:]
}

package schema

import (
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// Type is the declared type of a place, for display. The zero Type is that of a place without a declared type.
type Type struct{ of shape }

// TypeID identifies a type, so that a walk through a type that contains itself ends. Two types that differ have different IDs.
type TypeID struct {
	types               *smd.Schema
	named, relationship string
	inlined             smd.Atom
}

// ID returns the identity of the type.
func (t Type) ID() TypeID {
	id := TypeID{types: t.of.types, relationship: string(relation(t.of.ref)), inlined: t.of.ref.Inlined}
	if t.of.ref.NamedType != nil {
		id.named = *t.of.ref.NamedType
	}
	return id
}

// At returns the type one step below, or the zero Type if nothing is declared there.
func (t Type) At(e fieldpath.Element) Type {
	if !t.of.exists() {
		return Type{}
	}
	return Type{t.of.at(fieldpath.Pattern{e})}
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
	if !t.of.exists() {
		return anyType
	}
	atom, ok := t.of.types.Resolve(t.of.ref)
	name := t.name()
	switch {
	case !ok || atom == (smd.Atom{}) || atom.Scalar != nil && (atom.List != nil || atom.Map != nil):
		return anyType
	case atom.List != nil:
		return "[]" + t.At(fieldpath.Element{Any: true}).String()
	case atom.Map != nil && hasValues(atom.Map) && len(atom.Map.Fields) == 0:
		return "map[string]" + Type{shape{t.of.types, atom.Map.ElementType}}.String()
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
	if t.of.ref.NamedType == nil || strings.HasPrefix(*t.of.ref.NamedType, "__") {
		return ""
	}
	name := *t.of.ref.NamedType
	return name[strings.LastIndexByte(name, '.')+1:]
}

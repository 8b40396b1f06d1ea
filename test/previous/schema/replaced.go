package schema

import (
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// unemitted returns the fault of an entry that replaces an entry with a parameter source and has none itself. Without the source, every
// verb with that parameter would disappear, with the barriers on it.
func (b *builder) unemitted(o *overlay, atom smd.Atom) error {
	if o.emitter == nil || o.guard == nil || o.guard == o.emitter {
		return nil
	}
	name := o.emitter.entry.ParameterSource
	if o.guard.entry.ParameterSource == name || !emits(atom) {
		return nil
	}
	return o.guard.fault("%s: takes the place of an entry that emits parameter %q (%s), so every verb that takes the parameter would be gone: add parameterSource: %s", orRoot(b.at), name, o.emitter.source, name)
}

// emits reports whether a type can emit a parameter, from its keys or its value.
func emits(atom smd.Atom) bool {
	return atom.Scalar != nil || atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic && hasValues(atom.Map)
}

// barsForNothing returns the faults of barriers at or below a field that is never charged because of its role.
func (o *overlay) barsForNothing(at fieldpath.Pattern) []error {
	if o.role == RoleNone {
		return nil
	}
	const never = "%s: a barrier here holds nothing: %s: leave excluded and excludedWhen out"
	because := map[Role]string{
		RoleServerWritten: "the API server itself writes the field, and no change of it is charged",
		RoleIdentity:      "the field identifies the object, and is not charged when the object is created",
		RoleOwnership:     "changes of owners are charged at the fields that are owned",
	}[o.role]
	var out []error
	var visit func(*overlay, fieldpath.Pattern)
	visit = func(o *overlay, at fieldpath.Pattern) {
		if o == nil {
			return
		}
		if g := o.guard; g != nil && (g.entry.Excluded || g.entry.ExcludedWhen != "") {
			out = append(out, g.fault(never, orRoot(at), because))
		}
		visit(o.any, at.Child(fieldpath.Element{Any: true}))
		for _, name := range sortedKeys(o.fields) {
			visit(o.fields[name], at.Child(fieldpath.Element{Name: name}))
		}
	}
	visit(o, at)
	return out
}

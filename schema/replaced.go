package schema

import (
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// unemitted is an entry that replaces an entry with a parameter source, and does not emit that parameter.
type unemitted struct {
	fault     error
	parameter string
	// around is the value whose parts can take the parameter.
	around fieldpath.Pattern
}

// bare is a verb that lacks the parameter that it takes.
type bare struct {
	parameter string
	at        fieldpath.Pattern
}

// noteUnemitted notes such entries. It is a fault if a verb lacks the parameter: with the parameter, barriers on the verb would disappear.
func (b *builder) noteUnemitted(o *overlay, atom smd.Atom) {
	by := o.emitting()
	if by == nil || !emits(atom) {
		return
	}
	for _, g := range o.emitters {
		if name := g.entry.ParameterSource; name != by.entry.ParameterSource && !g.isIncluded() {
			b.unemitted = append(b.unemitted, unemitted{unemittedFault(by, g, orRoot(b.at)), name, slices.Clone(b.at[:max(len(b.at)-1, 0)])})
		}
	}
}

// unemittedFaults returns the faults among the entries that were noted.
func (b *builder) unemittedFaults() []error {
	var out []error
	for _, u := range b.unemitted {
		if slices.ContainsFunc(b.bare, func(v bare) bool {
			return v.parameter == u.parameter && len(v.at) >= len(u.around) && slices.Equal(v.at[:len(u.around)], u.around)
		}) {
			out = append(out, u.fault)
		}
	}
	b.unemitted, b.bare = nil, nil
	return out
}

func unemittedFault(by, replaced *guard, at string) error {
	name := replaced.entry.ParameterSource
	return by.fault("%s: takes the place of an entry that emits parameter %q (%s), so every verb that takes the parameter would be gone: add parameterSource: %s", at, name, replaced.source, name)
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
		for _, g := range o.barriers {
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

package schema

import (
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// maxGuardedPlaces is how many places of a kind are visited to count its guarded fields, because a schema may unfold without bound.
const maxGuardedPlaces = 5000

// Borne is a verb of an UncoveredPermissionSet that guards a field of a resource.
type Borne struct{ Source, Resource, Verb string }

// Borne returns the barriers of all sets, for each known resource that they name.
func (s *Schema) Borne() []Borne {
	var out []Borne
	for i := range s.uncovered {
		out = append(out, s.uncovered[i].borne...)
	}
	return out
}

// Unborne returns the barriers of sets that exist in the schema before and not in the schema after.
func Unborne(before, after *Schema) []Borne {
	left := after.Borne()
	return slices.DeleteFunc(before.Borne(), func(b Borne) bool { return slices.Contains(left, b) })
}

// TakenBy returns the fault of a source that replaces the verb. The barrier would silently lose its effect, without notice to the author
// of the set.
func (b Borne) TakenBy(source string) error {
	return &Error{Source: source, Pointer: "/spec/permissions", Message: fmt.Sprintf("takes verb %q away from %q, where %s has it as a barrier: keep the verb, or change that set first", b.Verb, b.Resource, b.Source)}
}

// GuardedFields counts the fields that the verbs of one set guard, for the first resources that have any.
func (s *Schema) GuardedFields(source string) []v1alpha1.GuardedFields {
	var out []v1alpha1.GuardedFields
	for i := range s.uncovered {
		set := &s.uncovered[i]
		if set.source != source {
			continue
		}
		for _, t := range set.targets {
			resource := t.Resource
			if t.subresource != "" {
				resource += "/" + t.subresource
			}
			n := int32(0)
			for _, k := range t.kinds {
				n = max(n, set.guards(k, t.has))
			}
			same := func(g v1alpha1.GuardedFields) bool { return g.Group == t.Group && g.Resource == resource }
			if n > 0 && !slices.ContainsFunc(out, same) && len(out) < v1alpha1.MaxGuardedFields {
				out = append(out, v1alpha1.GuardedFields{Group: t.Group, Resource: resource, Fields: n})
			}
		}
	}
	return out
}

// guards counts the places of a kind that have a verb of the set, are charged, and for which counts is true.
func (u *uncoveredSet) guards(k *Kind, counts func(fieldpath.Pattern) bool) int32 {
	n := int32(0)
	k.Guarded(maxGuardedPlaces, func(at fieldpath.Pattern, node *Node) {
		if node.role != RoleNone || !counts(at) {
			return
		}
		for _, p := range node.permissions {
			for v := range u.verbs {
				if p.MayBe(v) {
					n++
					return
				}
			}
		}
	})
	return n
}

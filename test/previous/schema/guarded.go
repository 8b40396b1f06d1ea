package schema

import (
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/test/previous/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
	"github.com/fieldperm/fieldperm/test/previous/verbs"
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

// TakenFromSets returns the barriers of sets that hold at a field in the schema before and not at that field in the schema after, or, with a
// parameter, for other values. In contrast to Unborne, another field with the verb does not make up for it.
func TakenFromSets(before, after *Schema) []Borne {
	var out []Borne
	for i := range before.uncovered {
		set := &before.uncovered[i]
		if len(set.borne) == 0 {
			continue // It is no set of its own, or guards nothing.
		}
		for _, t := range set.targets {
			changed, known := t.changedIn(after)
			for _, b := range set.borne {
				v, err := verbs.Parse(b.Verb)
				if err != nil || b.Resource != t.String() || slices.Contains(out, b) {
					continue
				}
				if !known || slices.ContainsFunc(changed, func(c *counterpart) bool { return c.takes(v) }) {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

// changedIn returns the charged fields that the target writes and where a verb covers less in another schema. It reports false if the other
// schema lacks the target or one of its kinds.
func (t *target) changedIn(after *Schema) ([]*counterpart, bool) {
	now, known := after.landscape.target(t.GroupResource, t.subresource)
	if !known {
		return nil, false
	}
	var out []*counterpart
	for _, was := range t.kinds {
		i := slices.IndexFunc(now.kinds, func(k *Kind) bool { return k.GroupVersionKind == was.GroupVersionKind })
		if i < 0 {
			return nil, false
		}
		compareTrees(was.Root, now.kinds[i].Root, partOf(t.writes), func(c *counterpart) {
			if c.was.role == RoleNone && slices.ContainsFunc(c.was.permissions, func(p *Permission) bool { return !c.keeps(p) }) {
				out = append(out, c)
			}
		})
	}
	return out, true
}

// TakenBy returns the fault of a source that replaces the verb. The barrier would silently lose its effect, without notice to the author
// of the set.
func (b Borne) TakenBy(source string) error {
	keep := "keep the verb"
	if v, err := verbs.Parse(b.Verb); err == nil && v != v.WithoutParameter() {
		keep = "keep the verb, with its parameterizedBy, parameterTreatment and parameterExpression"
	}
	return &Error{Source: source, Pointer: "/spec/permissions", Message: fmt.Sprintf("takes verb %q away from %q, where %s has it as a barrier: %s, or change that set first", b.Verb, b.Resource, b.Source, keep)}
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

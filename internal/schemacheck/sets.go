package schemacheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/verbs"
)

// Sets are the UncoveredPermissionSets of a compile, each with the resources and fields that its verbs guard. The zero Sets are none.
type Sets struct {
	index *index
	all   []set
}

// set is an UncoveredPermissionSet.
type set struct {
	source string
	verbs  []verbs.Verb
	// targets are the known resources that the set names.
	targets  []*target
	barriers []Barrier
	faults   []error
}

// Barrier is a verb of an UncoveredPermissionSet that guards a field of a resource.
type Barrier struct{ Source, Resource, Verb string }

// Compile compiles documents, and checks that the verbs of sets guard a field of their resources. The errors are those of both, in alphabetical
// order. A verb that guards no field stays in its set: it has no effect until a field has that verb.
func Compile(documents compile.Documents) (*schema.Schema, *Sets, []error) {
	compiled, errs := compile.Compile(documents)
	sets := NewSets(documents, compiled)
	for i := range sets.all {
		errs = append(errs, sets.all[i].faults...)
	}
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return compiled, sets, slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
}

// NewSets returns the sets of documents that a schema was compiled from.
func NewSets(documents compile.Documents, compiled *schema.Schema) *Sets {
	out := &Sets{}
	if len(documents.Uncovered) == 0 {
		return out
	}
	out.index = newIndex(&documents, compiled)
	for i := range documents.Uncovered {
		out.all = append(out.all, out.index.set(&documents.Uncovered[i]))
	}
	return out
}

func (x *index) set(d *sets.Document) set {
	c := &check{index: x, source: d.Source}
	var pointers []string
	for i, text := range d.Set.Spec.UncoveredPermissions {
		if v, err := verbs.Parse(text); err == nil && v != verbs.MarkerVerb() { // Other texts are faults of the compile.
			c.verbs, pointers = append(c.verbs, v), append(pointers, fmt.Sprintf("/spec/uncoveredPermissions/%d", i))
		}
	}
	c.run(&d.Set.Spec, x.schema.SetResources(&d.Set.Spec), pointers)
	out := set{source: d.Source, verbs: c.verbs, targets: c.targets, faults: c.faults}
	for _, t := range c.targets {
		for _, v := range c.verbs {
			if x.fit(t, v) == fits {
				out.barriers = append(out.barriers, Barrier{d.Source, t.String(), v.String()})
			}
		}
	}
	return out
}

// Barriers returns the barriers of all sets, for each known resource that they name.
func (s *Sets) Barriers() []Barrier {
	var out []Barrier
	for i := range s.all {
		out = append(out, s.all[i].barriers...)
	}
	return out
}

// Lost returns the barriers of sets that exist before and not after.
func Lost(before, after *Sets) []Barrier {
	left := after.Barriers()
	return slices.DeleteFunc(before.Barriers(), func(b Barrier) bool { return slices.Contains(left, b) })
}

// TakenFromSets returns the barriers of sets that hold at a field before and not at that field after, or, with a parameter, for other values. In
// contrast to Lost, another field with the verb does not make up for it.
func TakenFromSets(before, after *Sets) []Barrier {
	var out []Barrier
	for i := range before.all {
		one := &before.all[i]
		if len(one.barriers) == 0 {
			continue // It guards nothing.
		}
		for _, t := range one.targets {
			changed, known := t.changedIn(after.index)
			for _, b := range one.barriers {
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

// changedIn returns the charged fields that the target writes and where a verb covers less in another compile. It reports false if the other
// one lacks the target or one of its kinds.
func (t *target) changedIn(after *index) ([]*counterpart, bool) {
	if after == nil {
		return nil, false
	}
	now, known := after.target(t.GroupResource, t.subresource)
	if !known {
		return nil, false
	}
	var out []*counterpart
	for _, was := range t.kinds {
		i := slices.IndexFunc(now.kinds, func(k *schema.Kind) bool { return k.GroupVersionKind == was.GroupVersionKind })
		if i < 0 {
			return nil, false
		}
		compareTrees(was.Root, now.kinds[i].Root, partOf(t.writes), func(c *counterpart) {
			if c.was.Role() == schema.RoleNone && slices.ContainsFunc(c.was.Permissions(), func(p *schema.Permission) bool { return !c.keeps(p) }) {
				out = append(out, c)
			}
		})
	}
	return out, true
}

// TakenBy returns the fault of a source that replaces the verb. The barrier would silently lose its effect, without notice to the author
// of the set.
func (b Barrier) TakenBy(source string) error {
	keep := "keep the verb"
	if v, err := verbs.Parse(b.Verb); err == nil && v != v.WithoutParameter() {
		keep = "keep the verb, with its parameterizedBy, parameterTreatment and parameterExpression"
	}
	return &schema.Error{Source: source, Pointer: "/spec/permissions", Message: fmt.Sprintf("takes verb %q away from %q, where %s has it as a barrier: %s, or change that set first", b.Verb, b.Resource, b.Source, keep)}
}

// GuardedFields counts the fields that the verbs of one set guard, for the first resources that have any.
func (s *Sets) GuardedFields(source string) []v1alpha1.GuardedFields {
	var out []v1alpha1.GuardedFields
	for i := range s.all {
		if s.all[i].source != source {
			continue
		}
		of := schema.VerbSet{}
		for _, v := range s.all[i].verbs {
			of.Add(v, schema.Extent{})
		}
		for _, t := range s.all[i].targets {
			resource := t.Resource
			if t.subresource != "" {
				resource += "/" + t.subresource
			}
			most := int32(0)
			for _, k := range t.kinds {
				n := int32(0)
				k.Guarded(schema.MaxGuardedPlaces, func(at fieldpath.Pattern, node *schema.Node) {
					if node.GuardedBy(of) && t.has(at) {
						n++
					}
				})
				most = max(most, n)
			}
			same := func(g v1alpha1.GuardedFields) bool { return g.Group == t.Group && g.Resource == resource }
			if most > 0 && !slices.ContainsFunc(out, same) && len(out) < v1alpha1.MaxGuardedFields {
				out = append(out, v1alpha1.GuardedFields{Group: t.Group, Resource: resource, Fields: most})
			}
		}
	}
	return out
}

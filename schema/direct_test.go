package schema

import (
	"context"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Directly is what Uncovered and Tried return, without anything that is remembered, shared or left out: it asks each set about the request, and
// evaluates each condition for each set, with all inputs.
func (s *Schema) Directly(ctx context.Context, ref ResourceRef, request Request, action v1alpha1.ValidationAction) VerbSet {
	var out VerbSet
	fields, fieldsErr := request()
	for i := range s.uncovered {
		set := &s.uncovered[i]
		if acts := set.denies() && action == v1alpha1.ValidationDeny || slices.Contains(set.actions, action); !acts {
			continue
		}
		hold := func(changed map[string]any, to Extent) {
			input := map[string]any{requestVariable: maps.Clone(fields)}
			maps.Copy(input[requestVariable].(map[string]any), changed)
			for _, c := range set.conditions {
				if holds, err := evalBool(ctx, c.program, input); fieldsErr == nil && err == nil && !holds {
					return
				}
			}
			if out == nil {
				out = VerbSet{}
			}
			for v := range set.verbs {
				out.Add(v, to)
			}
		}
		covers := set.coversAny(ref)
		if covers {
			hold(nil, Extent{})
		}
		if covers && changesUnseen(ref) {
			hold(map[string]any{"operation": "UPDATE"}, Extent{})
		}
		for _, part := range set.parts(ref) {
			changed := map[string]any{"subResource": part, "requestSubResource": part}
			hold(changed, Extent{StatusOnly: part == status, OwnersOnly: part != status, StatusValues: part == status && s.storesStatus(ref)})
		}
	}
	return out
}

// Remembered returns the number of endpoints of which the sets are remembered.
func (s *Schema) Remembered() int {
	s.applicable.mu.RLock()
	defer s.applicable.mu.RUnlock()
	return len(s.applicable.known)
}

// DirectlyOnTemplates is what OnTemplates returns for one verb, without leaving out fields of Pods. The verbs are by resource.
func (s *Schema) DirectlyOnTemplates(v verbs.Verb, resources []v1alpha1.ResourceRule) map[string][]string {
	set := uncoveredSet{resources: resources}
	pod := s.kinds[podKind]
	all := &places{verb: v.WithoutParameter(), known: map[*Node]bool{}}
	walk(pod.Root, nil, map[*Node]bool{}, func(_ fieldpath.Pattern, n *Node) { all.known[n] = true })
	out := map[string][]string{}
	for _, t := range s.templated {
		found := map[verbs.Verb]bool{}
		named := set.covers(ResourceRef{Group: t.resource.Group, Version: t.kind.Version, Resource: t.resource.Resource})
		w := &templateWalk{verb: v, named: named, places: all, seen: map[pairing]bool{}, found: found}
		w.enter(pod.Root, s.kinds[t.kind].Root, above{})
		for is := range found {
			if base := is.WithoutParameter(); is == base || !found[base] {
				out[t.resource.String()] = append(out[t.resource.String()], is.String())
			}
		}
	}
	for at, found := range out {
		slices.Sort(found)
		out[at] = slices.Compact(found)
	}
	return out
}

// PodVerbs returns all verbs of Pods, without parameters.
func (s *Schema) PodVerbs() []verbs.Verb {
	found := map[verbs.Verb]bool{}
	s.kinds[podKind].Walk(func(_ fieldpath.Pattern, n *Node) {
		for _, p := range n.permissions {
			found[p.verb] = true
		}
	})
	return slices.Collect(maps.Keys(found))
}

package schema

import (
	"context"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
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

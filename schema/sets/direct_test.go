package sets

import (
	"context"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/cel"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/internal/dialect"
)

// Directly is what Matching returns, without anything that is remembered, shared or left out: it asks each set about the request, and
// evaluates each condition for each set, with all inputs.
func (s *Sets) Directly(ctx context.Context, ref schema.ResourceRef, request schema.Request, action v1alpha1.ValidationAction) schema.VerbSet {
	var out schema.VerbSet
	fields, fieldsErr := request()
	for i := range s.all {
		set := &s.all[i]
		if acts := set.denies() && action == v1alpha1.ValidationDeny || slices.Contains(set.actions, action); !acts {
			continue
		}
		hold := func(changed map[string]any, to schema.Extent) {
			input := map[string]any{dialect.RequestVariable: maps.Clone(fields)}
			maps.Copy(input[dialect.RequestVariable].(map[string]any), changed)
			for _, c := range set.conditions {
				if holds, err := cel.Bool(ctx, c.program, input, nil); fieldsErr == nil && err == nil && !holds {
					return
				}
			}
			if out == nil {
				out = schema.VerbSet{}
			}
			for v := range set.verbs {
				out.Add(v, to)
			}
		}
		covers := set.coversAny(ref)
		if covers {
			hold(nil, schema.Extent{})
		}
		if covers && changesUnseen(ref) {
			hold(map[string]any{"operation": "UPDATE"}, schema.Extent{})
		}
		for _, part := range set.parts(ref) {
			changed := map[string]any{"subResource": part, "requestSubResource": part}
			hold(changed, schema.Extent{StatusOnly: part == status, OwnersOnly: part != status, StatusValues: part == status && s.storesStatus(ref)})
		}
	}
	return out
}

// Remembered returns the number of endpoints of which the sets are remembered.
func (s *Sets) Remembered() int {
	s.applicable.mu.RLock()
	defer s.applicable.mu.RUnlock()
	return len(s.applicable.known)
}

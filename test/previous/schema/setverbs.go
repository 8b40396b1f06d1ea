package schema

import (
	"cmp"
	"slices"

	"github.com/fieldperm/fieldperm/test/previous/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/previous/verbs"
)

// SetVerb is a verb that an UncoveredPermissionSet makes a barrier for requests to an endpoint.
type SetVerb struct {
	Source string
	Verb   verbs.Verb
	// Actions are what the set does in place of refusing; it refuses if there are none.
	Actions []v1alpha1.ValidationAction
	// Conditions are the match conditions. The barrier holds for a request if all are true.
	Conditions []v1alpha1.MatchCondition
}

// SetVerbs returns the verbs of all sets that cover an endpoint under any of its names, by source and verb. In contrast to Uncovered it
// evaluates no condition. Callers must not change the slices of the result.
func (s *Schema) SetVerbs(ref ResourceRef) []SetVerb {
	var out []SetVerb
	for i := range s.uncovered {
		set := &s.uncovered[i]
		if !set.coversAny(ref) {
			continue
		}
		for v := range set.verbs {
			out = append(out, SetVerb{set.source, v, set.actions, set.declared})
		}
	}
	slices.SortFunc(out, func(a, b SetVerb) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Verb.String(), b.Verb.String()))
	})
	return out
}

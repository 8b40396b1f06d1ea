package policies

import (
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
)

// changes are the changed fields of a write as conditions see them.
type changes []fieldperm.Requirement

var _ expression.ChangeList = changes{}

// Len returns the number of changes.
func (c changes) Len() int { return len(c) }

// Path returns the path of a changed field.
func (c changes) Path(i int) string { return c[i].Path.String() }

// Operation returns what a change is.
func (c changes) Operation(i int) string { return string(c[i].Operation) }

// Verbs returns the verbs that cover a change.
func (c changes) Verbs(i int) []string {
	candidates := c[i].Candidates()
	out := make([]string, len(candidates))
	for j, verb := range candidates {
		out[j] = verb.String()
	}
	return out
}

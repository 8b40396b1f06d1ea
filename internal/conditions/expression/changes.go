package expression

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// ChangeList are the changed fields of a request. What an expression reads of a change is made when it is read, and not kept: a request can have tens of
// thousands of changes. Positions are from 0 to Len()-1. It must be immutable and safe for concurrent use.
type ChangeList interface {
	Len() int
	// Path returns the path of the field, as in messages of fieldperm.
	Path(i int) string
	// Operation returns "modified", "added", "removed", "reordered" or "ownership".
	Operation(i int) string
	// Verbs returns the verbs that cover the change, from general to specific.
	Verbs(i int) []string
}

// These are the fields of a change.
const (
	pathField, operationField, verbsField = "path", "operation", "verbs"
)

func fields() []string { return []string{pathField, operationField, verbsField} }

// position is a change in a list of changes.
type position int

// changes makes values of positions, and of the fields of a change.
type changes struct{ of ChangeList }

// newChanges returns the list for CEL.
func newChanges(of ChangeList) ref.Val {
	positions := make([]position, of.Len())
	for i := range positions {
		positions[i] = position(i)
	}
	return cel.List(changes{of}, positions)
}

// NativeToValue implements the adapter of cel-go.
func (c changes) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case position:
		return cel.Object(c, fields, map[string]any{
			pathField:      func() any { return c.of.Path(int(v)) },
			operationField: func() any { return c.of.Operation(int(v)) },
			// Verbs are never null.
			verbsField: func() any { return append([]string{}, c.of.Verbs(int(v))...) },
		})
	case func() any:
		return types.DefaultTypeAdapter.NativeToValue(v())
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

package expression

import (
	"reflect"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
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

// changes is a ChangeList as a list of CEL.
type changes struct {
	of ChangeList
	// elements are the changes as values, for sums of lists. Only an expression that adds lists has them made.
	elements func() traits.Lister
}

var _ traits.Lister = &changes{}

func newChanges(of ChangeList) *changes {
	return &changes{of: of, elements: sync.OnceValue(func() traits.Lister {
		out := make([]ref.Val, of.Len())
		for i := range out {
			out[i] = change{of, i}
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	})}
}

// Get returns a change by its index, an error if there is none.
func (c *changes) Get(index ref.Val) ref.Val {
	n, err := types.IndexOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if n < 0 || n >= c.of.Len() {
		return types.NewErr("index '%d' out of range in list size '%d'", n, c.of.Len())
	}
	return change{c.of, n}
}

// Contains reports whether a change is equal to a value.
func (c *changes) Contains(value ref.Val) ref.Val {
	for i := range c.of.Len() {
		if (change{c.of, i}).Equal(value) == types.True {
			return types.True
		}
	}
	return types.False
}

// Size returns the number of changes.
func (c *changes) Size() ref.Val { return types.Int(c.of.Len()) }

// Iterator iterates over the changes.
func (c *changes) Iterator() traits.Iterator { return &changeIterator{of: c.of} }

// IsZeroValue reports whether there are no changes.
func (c *changes) IsZeroValue() bool { return c.of.Len() == 0 }

// Add returns a list with the items of both.
func (c *changes) Add(other ref.Val) ref.Val { return c.elements().Add(other) }

// Equal reports whether two values are equal.
func (c *changes) Equal(other ref.Val) ref.Val {
	with, ok := other.(traits.Lister)
	if !ok || c.Size() != with.Size() {
		return types.False
	}
	for i, theirs := 0, with.Iterator(); theirs.HasNext() == types.True; i++ {
		if (change{c.of, i}).Equal(theirs.Next()) != types.True {
			return types.False
		}
	}
	return types.True
}

// ConvertToNative returns a Go value.
func (c *changes) ConvertToNative(to reflect.Type) (any, error) {
	return types.NewDynamicList(types.DefaultTypeAdapter, c.Value()).ConvertToNative(to)
}

// ConvertToType returns the value as another CEL type.
func (c *changes) ConvertToType(to ref.Type) ref.Val {
	if to == types.ListType {
		return c
	}
	return types.NewRefValList(types.DefaultTypeAdapter, nil).ConvertToType(to)
}

// Type returns the type list.
func (c *changes) Type() ref.Type { return types.ListType }

// Value returns the decoded changes.
func (c *changes) Value() any {
	out := make([]any, c.of.Len())
	for i := range out {
		out[i] = change{c.of, i}.Value()
	}
	return out
}

type changeIterator struct {
	ref.Val
	of ChangeList
	at int
}

// HasNext reports whether there is another change.
func (i *changeIterator) HasNext() ref.Val { return types.Bool(i.at < i.of.Len()) }

// Next returns the next change, nil if there is none.
func (i *changeIterator) Next() ref.Val {
	if i.at >= i.of.Len() {
		return nil
	}
	i.at++
	return change{i.of, i.at - 1}
}

// change is one change as a map of CEL.
type change struct {
	of ChangeList
	at int
}

var _ traits.Mapper = change{}

// These are the fields of a change.
const (
	pathField, operationField, verbsField = "path", "operation", "verbs"
)

// Find returns a field.
func (c change) Find(key ref.Val) (ref.Val, bool) {
	switch key {
	case types.String(pathField):
		return types.String(c.of.Path(c.at)), true
	case types.String(operationField):
		return types.String(c.of.Operation(c.at)), true
	case types.String(verbsField):
		return types.NewStringList(types.DefaultTypeAdapter, c.verbs()), true
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, nil).Find(key)
}

// verbs is never nil.
func (c change) verbs() []string { return append([]string{}, c.of.Verbs(c.at)...) }

func (c change) whole() traits.Mapper {
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, c.native())
}

func (c change) native() map[string]any {
	return map[string]any{pathField: c.of.Path(c.at), operationField: c.of.Operation(c.at), verbsField: c.verbs()}
}

// Get returns a field, an error if there is none.
func (c change) Get(key ref.Val) ref.Val {
	if found, ok := c.Find(key); ok {
		return found
	}
	return c.whole().Get(key)
}

// Contains reports whether there is a field.
func (c change) Contains(key ref.Val) ref.Val {
	_, ok := c.Find(key)
	return types.Bool(ok)
}

// Size returns the number of fields.
func (c change) Size() ref.Val { return types.Int(3) }

// Iterator iterates over the names of the fields.
func (c change) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, []string{pathField, operationField, verbsField}).Iterator()
}

// IsZeroValue returns false.
func (c change) IsZeroValue() bool { return false }

// Equal reports whether two values are equal.
func (c change) Equal(other ref.Val) ref.Val { return c.whole().Equal(other) }

// ConvertToNative returns a Go value.
func (c change) ConvertToNative(to reflect.Type) (any, error) { return c.whole().ConvertToNative(to) }

// ConvertToType returns the value as another CEL type.
func (c change) ConvertToType(to ref.Type) ref.Val {
	if to == types.MapType {
		return c
	}
	return c.whole().ConvertToType(to)
}

// Type returns the type map.
func (c change) Type() ref.Type { return types.MapType }

// Value returns the decoded change.
func (c change) Value() any { return c.native() }

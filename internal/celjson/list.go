package celjson

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// list is a JSON list.
type list struct {
	json rawjson.Value
	tree *tree
}

var _ traits.Lister = &list{}

// Get returns an item by its index, an error if there is none.
func (l *list) Get(index ref.Val) ref.Val {
	n, err := types.IndexOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if item := l.item(n); !item.IsAbsent() {
		return l.tree.value(item)
	}
	return types.NewErr("index '%d' out of range in list size '%d'", n, l.Size())
}

// item returns an item, absent if there is none.
func (l *list) item(n int) rawjson.Value {
	if n < 0 {
		return rawjson.Value{}
	}
	if x := l.tree.index(l.json); x != nil {
		return x.Item(n)
	}
	at := 0
	for i := l.json.Items(); i.Next(); at++ {
		if at == n {
			l.tree.scanned(l.json, at)
			return i.Value()
		}
	}
	l.tree.scanned(l.json, at)
	return rawjson.Value{}
}

// Contains reports whether an item is equal to a value. If none is, and one cannot be compared, the result is an error.
func (l *list) Contains(value ref.Val) ref.Val {
	var failed ref.Val
	for i := l.json.Items(); i.Next(); {
		item := l.tree.value(i.Value())
		var equal ref.Val
		if i.Value().IsScalar() {
			equal = value.Equal(item)
		} else {
			equal = item.Equal(value)
		}
		if equal == types.True {
			return equal
		}
		if equal != types.False && failed == nil {
			failed = equal
		}
	}
	if failed != nil {
		return failed
	}
	return types.False
}

// Size returns the number of items.
func (l *list) Size() ref.Val {
	if x := l.tree.index(l.json); x != nil {
		return types.Int(x.Len())
	}
	n := 0
	for i := l.json.Items(); i.Next(); {
		n++
	}
	l.tree.scanned(l.json, n)
	return types.Int(n)
}

// Iterator iterates over the items.
func (l *list) Iterator() traits.Iterator {
	i := &items{of: l.tree, at: l.json.Items()}
	i.more = i.at.Next()
	return i
}

// IsZeroValue reports whether there are no items.
func (l *list) IsZeroValue() bool { return l.json.IsEmpty() }

// Add returns a list with the items of both.
func (l *list) Add(other ref.Val) ref.Val { return joined(l, other) }

// Equal reports whether two values are equal.
func (l *list) Equal(other ref.Val) ref.Val { return equalLists(l, other) }

// ConvertToNative returns a Go value.
func (l *list) ConvertToNative(to reflect.Type) (any, error) {
	return decoded(l.json).ConvertToNative(to)
}

// ConvertToType returns the value as another CEL type.
func (l *list) ConvertToType(to ref.Type) ref.Val { return convertList(l, to) }

// Type returns the type list.
func (l *list) Type() ref.Type { return types.ListType }

// Value returns the decoded list.
func (l *list) Value() any { return native(l.json) }

// equalLists compares item by item.
func equalLists(l traits.Lister, other ref.Val) ref.Val {
	with, ok := other.(traits.Lister)
	if !ok {
		return types.False
	}
	if different := sized(l, with); different != nil {
		return different
	}
	var all comparison
	for mine, theirs := l.Iterator(), with.Iterator(); mine.HasNext() == types.True; {
		if all.differs(mine.Next(), theirs.Next()) {
			return types.False
		}
	}
	return all.result()
}

func convertList(l traits.Lister, to ref.Type) ref.Val {
	if to == types.ListType {
		return l
	}
	return types.NewRefValList(types.DefaultTypeAdapter, nil).ConvertToType(to)
}

// items iterates over the items of a list.
type items struct {
	ref.Val
	of   *tree
	at   rawjson.Items
	more bool
}

// HasNext reports whether there is another item.
func (i *items) HasNext() ref.Val { return types.Bool(i.more) }

// Next returns the next item, nil if there is none.
func (i *items) Next() ref.Val {
	if !i.more {
		return nil
	}
	out := i.of.value(i.at.Value())
	i.more = i.at.Next()
	return out
}

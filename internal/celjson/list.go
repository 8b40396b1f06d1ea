package celjson

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// list is a JSON list.
type list struct{ json rawjson.Value }

var _ traits.Lister = &list{}

func (l *list) whole() traits.Lister { return decoded(l.json).(traits.Lister) }

// Get returns an item by its index, an error if there is none.
func (l *list) Get(index ref.Val) ref.Val {
	if n, ok := index.(types.Int); ok && n >= 0 {
		at := types.Int(0)
		for i := l.json.Items(); i.Next(); at++ {
			if at == n {
				return Of(i.Value())
			}
		}
	}
	return l.whole().Get(index)
}

// Contains reports whether an item is equal to a value.
func (l *list) Contains(value ref.Val) ref.Val { return l.whole().Contains(value) }

// Size returns the number of items.
func (l *list) Size() ref.Val {
	n := types.Int(0)
	for i := l.json.Items(); i.Next(); {
		n++
	}
	return n
}

// Iterator iterates over the items.
func (l *list) Iterator() traits.Iterator {
	i := &iterator{}
	for item := l.json.Items(); item.Next(); {
		i.left = append(i.left, Of(item.Value()))
	}
	return i
}

// IsZeroValue reports whether there are no items.
func (l *list) IsZeroValue() bool { return l.json.IsEmpty() }

// Add returns a list with the items of both.
func (l *list) Add(other ref.Val) ref.Val { return l.whole().Add(other) }

// Equal reports whether two values are equal.
func (l *list) Equal(other ref.Val) ref.Val { return l.whole().Equal(other) }

// ConvertToNative returns a Go value.
func (l *list) ConvertToNative(to reflect.Type) (any, error) { return l.whole().ConvertToNative(to) }

// ConvertToType returns the value as another CEL type.
func (l *list) ConvertToType(to ref.Type) ref.Val { return l.whole().ConvertToType(to) }

// Type returns the type list.
func (l *list) Type() ref.Type { return types.ListType }

// Value returns the decoded list.
func (l *list) Value() any { return native(l.json) }

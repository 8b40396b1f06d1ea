package celjson

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// sum is a list with the items of two lists, which stay as they are. cel-go makes such a list of its own lists only.
type sum struct {
	first, second traits.Lister
	// n and all are the numbers of items of the first list and of both.
	n, all types.Int
}

var _ traits.Lister = &sum{}

// joined returns a list with the items of both.
func joined(first traits.Lister, other ref.Val) ref.Val {
	second, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	n, isSized := first.Size().(types.Int)
	m, areSized := second.Size().(types.Int)
	switch {
	case !isSized || !areSized:
		return types.NewErr("a list without a size cannot be added")
	case n == 0:
		return second
	case m == 0:
		return first
	}
	return &sum{first, second, n, n + m}
}

// Get returns an item by its index, an error if there is none.
func (s *sum) Get(index ref.Val) ref.Val {
	n, err := types.IndexOrError(index)
	if err != nil {
		return types.ValOrErr(index, "%v", err)
	}
	if types.Int(n) < s.n {
		return s.first.Get(types.Int(n))
	}
	return s.second.Get(types.Int(n) - s.n)
}

// Contains reports whether an item is equal to a value.
func (s *sum) Contains(value ref.Val) ref.Val {
	first := s.first.Contains(value)
	if first == types.True {
		return first
	}
	if second := s.second.Contains(value); second == types.True || !types.IsUnknownOrError(first) {
		return second
	}
	return first
}

// Size returns the number of items.
func (s *sum) Size() ref.Val { return s.all }

// Iterator iterates over the items.
func (s *sum) Iterator() traits.Iterator {
	return &both{first: s.first.Iterator(), second: s.second.Iterator()}
}

// IsZeroValue returns false: an empty list is no sum.
func (s *sum) IsZeroValue() bool { return false }

// Add returns a list with the items of both.
func (s *sum) Add(other ref.Val) ref.Val { return joined(s, other) }

// Equal reports whether two values are equal.
func (s *sum) Equal(other ref.Val) ref.Val { return equalLists(s, other) }

// ConvertToNative returns a Go value.
func (s *sum) ConvertToNative(to reflect.Type) (any, error) {
	return types.NewDynamicList(types.DefaultTypeAdapter, s.Value()).ConvertToNative(to)
}

// ConvertToType returns the value as another CEL type.
func (s *sum) ConvertToType(to ref.Type) ref.Val { return convertList(s, to) }

// Type returns the type list.
func (s *sum) Type() ref.Type { return types.ListType }

// Value returns the decoded items.
func (s *sum) Value() any {
	out := make([]any, 0, s.all)
	for i := s.Iterator(); i.HasNext() == types.True; {
		out = append(out, i.Next().Value())
	}
	return out
}

// both iterates over two lists.
type both struct {
	ref.Val
	first, second traits.Iterator
}

// HasNext reports whether there is another item.
func (b *both) HasNext() ref.Val {
	if b.first.HasNext() == types.True {
		return types.True
	}
	return b.second.HasNext()
}

// Next returns the next item, nil if there is none.
func (b *both) Next() ref.Val {
	if b.first.HasNext() == types.True {
		return b.first.Next()
	}
	return b.second.Next()
}

package celjson

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// object is a JSON object.
type object struct {
	json rawjson.Value
	tree *tree
}

var _ traits.Mapper = &object{}

// emptyMap stands for a decoded object where the members do not matter.
func emptyMap() traits.Mapper {
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, nil)
}

// Find returns the value of a key. A name that occurs twice is an error.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return emptyMap().Find(key)
	}
	found, n := o.find(string(name))
	switch n {
	case 0:
		return nil, false
	case 1:
		return o.tree.value(found), true
	}
	return types.NewErr("key %q occurs twice", string(name)), false
}

// find returns the last value of a name, and whether there are none, one or more.
func (o *object) find(name string) (rawjson.Value, int) {
	if x := o.tree.index(o.json); x != nil {
		return x.Find(name)
	}
	var out rawjson.Value
	n, members := 0, 0
	for m := o.json.Members(); m.Next(); members++ {
		if at := m.Name(); at.Is(name) {
			out = m.Value()
			n++
		}
	}
	o.tree.scanned(o.json, members)
	return out, n
}

// Get returns the value of a key, an error if there is none.
func (o *object) Get(key ref.Val) ref.Val {
	found, ok := o.Find(key)
	if !ok && found == nil {
		return types.NewErr("no such key: %v", key)
	}
	return found
}

// Contains reports whether there is a key.
func (o *object) Contains(key ref.Val) ref.Val {
	found, ok := o.Find(key)
	if !ok && found != nil {
		return found
	}
	return types.Bool(ok)
}

// Size returns the number of keys. A name that occurs twice is an error.
func (o *object) Size() ref.Val {
	var n int
	var ambiguous bool
	if x := o.tree.index(o.json); x != nil {
		n, ambiguous = x.Len(), x.Ambiguous()
	} else {
		for m := o.json.Members(); m.Next(); {
			n++
		}
		ambiguous = o.json.Ambiguous()
		o.tree.scanned(o.json, n)
	}
	if ambiguous {
		return types.NewErr("a name occurs twice in an object")
	}
	return types.Int(n)
}

// Iterator iterates over the keys.
func (o *object) Iterator() traits.Iterator {
	i := &keys{at: o.json.Members()}
	i.more = i.at.Next()
	return i
}

// IsZeroValue reports whether there are no keys.
func (o *object) IsZeroValue() bool { return o.json.IsEmpty() }

// Equal reports whether two values are equal. A name that occurs twice is an error.
func (o *object) Equal(other ref.Val) ref.Val {
	if size := o.Size(); types.IsError(size) {
		return size
	}
	with, ok := other.(traits.Mapper)
	if !ok {
		return types.False
	}
	if different := sized(o, with); different != nil {
		return different
	}
	// Objects that an encoder has written have their names in the same order. Then no lookup is needed.
	var inStep rawjson.Members
	second, isStep := with.(*object)
	if isStep {
		inStep = second.json.Members()
	}
	var all comparison
	for m := o.json.Members(); m.Next(); {
		isStep = isStep && inStep.Next() && m.Name().Equal(inStep.Name())
		var theirs ref.Val
		if isStep {
			theirs = second.tree.value(inStep.Value())
		} else if theirs, ok = with.Find(types.String(m.Name().String())); !ok {
			return types.False
		}
		if all.differs(o.tree.value(m.Value()), theirs) {
			return types.False
		}
	}
	return all.result()
}

// ConvertToNative returns a Go value.
func (o *object) ConvertToNative(to reflect.Type) (any, error) {
	if size := o.Size(); types.IsError(size) {
		return nil, fmt.Errorf("%v", size.Value())
	}
	return decoded(o.json).ConvertToNative(to)
}

// ConvertToType returns the value as another CEL type.
func (o *object) ConvertToType(to ref.Type) ref.Val {
	if size := o.Size(); types.IsError(size) {
		return size
	}
	if to == types.MapType {
		return o
	}
	return emptyMap().ConvertToType(to)
}

// Type returns the type map.
func (o *object) Type() ref.Type { return types.MapType }

// Value returns the decoded object.
func (o *object) Value() any { return native(o.json) }

// keys iterates over the names of an object.
type keys struct {
	ref.Val
	at   rawjson.Members
	more bool
}

// HasNext reports whether there is another name.
func (k *keys) HasNext() ref.Val { return types.Bool(k.more) }

// Next returns the next name, nil if there is none.
func (k *keys) Next() ref.Val {
	if !k.more {
		return nil
	}
	out := types.String(k.at.Name().String())
	k.more = k.at.Next()
	return out
}

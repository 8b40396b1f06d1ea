// Package celjson makes CEL values of JSON without decoding it. A field is decoded when an expression reads it.
package celjson

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Of returns the CEL value of a JSON value. An absent value is null. Numbers are int if they are integers that fit, and else double. The value
// must not be used after the release of the document. It is safe for concurrent use.
func Of(v rawjson.Value) ref.Val {
	switch v.Kind() {
	case rawjson.Object:
		return &object{v}
	case rawjson.List:
		return &list{v}
	case rawjson.Absent, rawjson.Null, rawjson.Bool, rawjson.Number, rawjson.String:
	}
	return decoded(v)
}

// decoded returns the value with everything in it, for the operations that need all of it.
func decoded(v rawjson.Value) ref.Val {
	return types.DefaultTypeAdapter.NativeToValue(native(v))
}

// native decodes as the API server does. 1.0 is a double, as in its own expressions.
func native(v rawjson.Value) any {
	switch v.Kind() {
	case rawjson.Number:
		if f, ok := rawjson.Native(v, nil).(int64); ok && bytes.ContainsAny(v.Raw(), ".eE") {
			return float64(f)
		}
	case rawjson.List:
		out := []any{}
		for i := v.Items(); i.Next(); {
			out = append(out, native(i.Value()))
		}
		return out
	case rawjson.Object:
		out := map[string]any{}
		for m := v.Members(); m.Next(); {
			out[m.Name().String()] = native(m.Value())
		}
		return out
	case rawjson.Absent, rawjson.Null, rawjson.Bool, rawjson.String:
	}
	return rawjson.Native(v, nil)
}

// object is a JSON object.
type object struct{ json rawjson.Value }

var _ traits.Mapper = &object{}

// whole returns the decoded object, or an error for an object with a name that occurs twice.
func (o *object) whole() (traits.Mapper, ref.Val) {
	if o.json.Ambiguous() {
		return nil, types.NewErr("a name occurs twice in an object")
	}
	return decoded(o.json).(traits.Mapper), nil
}

// Find returns the value of a key. A name that occurs twice is an error.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		all, err := o.whole()
		if err != nil {
			return err, false
		}
		return all.Find(key)
	}
	found, n := o.json.Find(string(name))
	switch n {
	case 0:
		return nil, false
	case 1:
		return Of(found), true
	}
	return types.NewErr("key %q occurs twice", string(name)), false
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

// Size returns the number of keys.
func (o *object) Size() ref.Val {
	if o.json.Ambiguous() {
		return types.NewErr("a name occurs twice in an object")
	}
	return types.Int(count(o.json))
}

// Iterator iterates over the keys.
func (o *object) Iterator() traits.Iterator {
	i := &iterator{}
	for m := o.json.Members(); m.Next(); {
		i.left = append(i.left, types.String(m.Name().String()))
	}
	return i
}

// IsZeroValue reports whether there are no keys.
func (o *object) IsZeroValue() bool { return o.json.IsEmpty() }

// Equal reports whether two values are equal.
func (o *object) Equal(other ref.Val) ref.Val {
	all, err := o.whole()
	if err != nil {
		return err
	}
	return all.Equal(other)
}

// ConvertToNative returns a Go value.
func (o *object) ConvertToNative(to reflect.Type) (any, error) {
	all, err := o.whole()
	if err != nil {
		return nil, fmt.Errorf("%v", err.Value())
	}
	return all.ConvertToNative(to)
}

// ConvertToType returns the value as another CEL type.
func (o *object) ConvertToType(to ref.Type) ref.Val {
	all, err := o.whole()
	if err != nil {
		return err
	}
	return all.ConvertToType(to)
}

// Type returns the type map.
func (o *object) Type() ref.Type { return types.MapType }

// Value returns the decoded object.
func (o *object) Value() any { return native(o.json) }

// count returns the number of members of an object.
func count(v rawjson.Value) int {
	n := 0
	for m := v.Members(); m.Next(); {
		n++
	}
	return n
}

// iterator iterates over values.
type iterator struct {
	ref.Val
	left []ref.Val
}

// HasNext reports whether there is another value.
func (i *iterator) HasNext() ref.Val { return types.Bool(len(i.left) > 0) }

// Next returns the next value, nil if there is none.
func (i *iterator) Next() ref.Val {
	if len(i.left) == 0 {
		return nil
	}
	out := i.left[0]
	i.left = i.left[1:]
	return out
}

package cel

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Of returns the CEL value of a JSON value. Lists and objects are those of cel-go, of which one level is decoded when an expression first reads it: a
// lookup takes about the same time in all of them. An absent value is null. Numbers are int if they are integers that fit, and else double. JSON parsers
// disagree about an object in which a name occurs twice. So the value is an error if there is one in the document.
//
// The value must not be used after the release of the document. It is safe for concurrent use.
func Of(v rawjson.Value) ref.Val {
	if v.NamesRepeat() {
		return types.NewErr("a name occurs twice in an object")
	}
	return Decoded(native(v))
}

// Decoded returns the CEL value of decoded JSON, with int64 and float64 for numbers, which must not change.
func Decoded(v any) ref.Val { return jsonAdapter{}.NativeToValue(v) }

// native returns a scalar as the API server decodes it: 1.0 is a double, as in its own expressions. A list or object is a *part.
func native(v rawjson.Value) any {
	if v.IsList() || v.IsObject() {
		return &part{json: v}
	}
	out := rawjson.Native(v, nil)
	if i, ok := out.(int64); ok && bytes.ContainsAny(v.Raw(), ".eE") {
		return float64(i)
	}
	return out
}

// part is a list or an object.
type part struct {
	json  rawjson.Value
	once  sync.Once
	value ref.Val
}

// read decodes one level.
func (p *part) read() ref.Val {
	p.once.Do(func() {
		if p.json.IsList() {
			items := []any{}
			for i := p.json.Items(); i.Next(); {
				items = append(items, native(i.Value()))
			}
			p.value = List(jsonAdapter{}, items)
			return
		}
		var names []string
		members := map[string]any{}
		for m := p.json.Members(); m.Next(); {
			names = append(names, m.Name().String())
			members[names[len(names)-1]] = native(m.Value())
		}
		p.value = Object(jsonAdapter{}, func() []string { return names }, members)
	})
	return p.value
}

// jsonAdapter makes values of decoded JSON, and of what native returns.
type jsonAdapter struct{}

func (a jsonAdapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case *part:
		return v.read()
	case map[string]any:
		return Object(a, func() []string { return slices.Sorted(maps.Keys(v)) }, v)
	case []any:
		return List(a, v)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// List returns the list of cel-go with the elements of a slice, of which the adapter makes values when they are read.
func List(adapter types.Adapter, elements any) ref.Val {
	return &list{types.NewDynamicList(adapter, elements)}
}

// list hides that the list of cel-go is traits.Foldable: the result of a fold would have the elements themselves.
type list struct{ traits.Lister }

// IsZeroValue reports whether there are no elements.
func (l *list) IsZeroValue() bool { return l.Size() == types.IntZero }

// Add returns a list with the elements of both.
func (l *list) Add(other ref.Val) ref.Val {
	if sum := l.Lister.Add(other); sum != ref.Val(l.Lister) {
		return sum
	}
	return l
}

// Object returns the map of cel-go with the members of a map, of which the adapter makes values when they are read. Loops are in the order of the names,
// and not in another order each time.
func Object(adapter types.Adapter, names func() []string, members map[string]any) ref.Val {
	return &object{types.NewStringInterfaceMap(adapter, members), names}
}

// object hides, as list does, that the map of cel-go is traits.Foldable.
type object struct {
	traits.Mapper
	names func() []string
}

// IsZeroValue reports whether there are no members.
func (o *object) IsZeroValue() bool { return o.Size() == types.IntZero }

// Iterator iterates over the names.
func (o *object) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, o.names()).Iterator()
}

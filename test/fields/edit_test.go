//go:build integration

package fields

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/test/openapi"
)

// edit is a change of an object at one place.
type edit struct {
	object map[string]any
	// place is the path of the change, with its indexes and keys.
	place []any
}

// edits returns changes of an object at a path. The changes that the API server will most likely accept come first.
func (s *schemas) edits(object map[string]any, p path, m *openapi.Type) []edit {
	place := s.locate(object, p)
	now, present := get(object, place)
	var out []edit
	for _, value := range s.values(m, p.name(), now) {
		out = append(out, s.edited(object, p, place, value))
	}
	if len(p) > 0 && p[len(p)-1].any {
		// Add an item, in addition to a change of an existing one.
		if list, _ := get(object, place[:len(place)-1]); list != nil {
			more := slices.Clone(place)
			switch l := list.(type) {
			case []any:
				more[len(more)-1] = len(l)
			case map[string]any:
				more[len(more)-1] = mapKey(p.name())
			}
			for _, value := range s.values(m, p.name(), nil) {
				out = append(out, s.edited(object, p, more, value))
			}
		}
	}
	if present {
		copied := runtime.DeepCopyJSON(object)
		remove(copied, place)
		out = append(out, edit{copied, place})
	}
	if e, ok := s.another(object, p, m); ok {
		out = append(out, e)
	}
	return out
}

// another puts the field into a new item of the last list on the path, because the existing items of a union exclude it.
func (s *schemas) another(object map[string]any, p path, m *openapi.Type) (edit, bool) {
	for i := len(p) - 2; i > 0; i-- {
		if !p[i].any {
			continue
		}
		place := s.locate(object, p)
		list, ok := get(object, place[:i])
		items, isList := list.([]any)
		if !ok || !isList || len(items) == 0 {
			continue
		}
		for j := i + 1; j < len(place); j++ {
			if p[j].any {
				place[j] = 0
			}
		}
		place[i] = len(items)
		values := s.values(m, p.name(), nil)
		if len(values) == 0 {
			return edit{}, false
		}
		e := s.edited(object, p, place, values[0])
		// A list with names does not accept the same name twice.
		if v, ok := get(e.object, place[:i+1]); ok {
			if item, ok := v.(map[string]any); ok {
				if _, named := item["name"].(string); named && p.name() != "name" {
					item["name"] = "another"
				}
			}
		}
		return e, true
	}
	return edit{}, false
}

// locate turns a path into a place: the item that has most of the path, the first key of a map.
func (s *schemas) locate(object map[string]any, p path) []any {
	place, _ := s.deepest(object, p, s.root)
	return place
}

func (s *schemas) deepest(at any, p path, m *openapi.Type) ([]any, int) {
	if len(p) == 0 {
		return nil, 0
	}
	m = s.Resolve(m)
	if !p[0].any {
		child, ok := at.(map[string]any)
		var v any
		if ok {
			v, ok = child[p[0].field]
		}
		rest, depth := s.deepest(v, p[1:], m.Properties[p[0].field])
		if ok {
			depth++
		}
		return append([]any{p[0].field}, rest...), depth
	}
	if m.Items == nil {
		key := mapKey("")
		var v any
		found := 0
		if child, ok := at.(map[string]any); ok && len(child) > 0 {
			key = sorted(child)[0]
			v, found = child[key], 1
		}
		rest, depth := s.deepest(v, p[1:], m.Values)
		return append([]any{key}, rest...), depth + found
	}
	best, most := append([]any{0}, first(s.deepest(nil, p[1:], m.Items))...), 0
	items, _ := at.([]any)
	for i, item := range items {
		if rest, depth := s.deepest(item, p[1:], m.Items); depth+1 > most {
			best, most = append([]any{i}, rest...), depth+1
		}
	}
	return best, most
}

func first[T any](v T, _ int) T { return v }

// edited returns the object with a value at a place. It creates missing containers on the way.
func (s *schemas) edited(object map[string]any, p path, place []any, value any) edit {
	copied, _ := s.put(runtime.DeepCopyJSON(object), p, place, s.root, value).(map[string]any)
	return edit{copied, place}
}

func (s *schemas) put(at any, p path, place []any, m *openapi.Type, value any) any {
	if len(place) == 0 {
		return runtime.DeepCopyJSONValue(normal(value))
	}
	m = s.Resolve(m)
	switch key := place[0].(type) {
	case string:
		object, ok := at.(map[string]any)
		if !ok {
			object = map[string]any{}
			if made, isObject := normal(s.make(m, "", 1)).(map[string]any); isObject && len(m.Properties) > 0 {
				object = runtime.DeepCopyJSON(made)
			}
		}
		child := m.Values
		if p := m.Properties[key]; p != nil {
			child = p
		}
		object[key] = s.put(object[key], p[1:], place[1:], child, value)
		return object
	case int:
		list, _ := at.([]any)
		for len(list) <= key {
			item := normal(s.make(m.Items, p[0].field, 1))
			list = append(list, runtime.DeepCopyJSONValue(item))
		}
		list[key] = s.put(list[key], p[1:], place[1:], m.Items, value)
		return list
	}
	return at
}

// normal converts numbers to int64, as in decoded JSON.
func normal(v any) any {
	switch x := v.(type) {
	case int:
		return int64(x)
	case float64:
		if x == float64(int64(x)) {
			return int64(x)
		}
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = normal(x[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k := range x {
			out[k] = normal(x[k])
		}
		return out
	}
	return v
}

func get(at any, place []any) (any, bool) {
	for _, key := range place {
		switch k := key.(type) {
		case string:
			object, ok := at.(map[string]any)
			if !ok {
				return nil, false
			}
			if at, ok = object[k]; !ok {
				return nil, false
			}
		case int:
			list, ok := at.([]any)
			if !ok || k >= len(list) {
				return nil, false
			}
			at = list[k]
		}
	}
	return at, true
}

func remove(object map[string]any, place []any) {
	last := len(place) - 1
	parent, ok := get(object, place[:last])
	if !ok {
		return
	}
	switch key := place[last].(type) {
	case string:
		if o, ok := parent.(map[string]any); ok {
			delete(o, key)
		}
	case int:
		if l, ok := parent.([]any); ok && key < len(l) {
			above, _ := get(object, place[:last-1])
			shorter := slices.Delete(slices.Clone(l), key, key+1)
			switch k := place[last-1].(type) {
			case string:
				above.(map[string]any)[k] = shorter
			case int:
				above.([]any)[k] = shorter
			}
		}
	}
}

// differs reports whether the value at a place differs between two objects.
func differs(a, b map[string]any, place []any) bool {
	x, inA := get(a, place)
	y, inB := get(b, place)
	return inA != inB || !reflect.DeepEqual(x, y)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

//go:build integration

package fields

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// collect adds the paths of the fields that differ. A list is one field if its length differs, unless it has keys: then it is the fields of the items
// that only one of both has. A map with keys of its own is one field, except that each label is one, and all annotations of one domain are one. An object
// that only one of both has is one field, unless compared is nil, and so is an atomic one. The value of a path is true if an item is new.
func collect(a, b any, at string, compared map[string]string, out map[string]bool) {
	x, isMap := a.(map[string]any)
	y, isToo := b.(map[string]any)
	switch {
	case reflect.DeepEqual(a, b):
	case isMap && isToo && compared[at] == "atomic":
		note(out, at, false)
	case isMap && isToo || compared == nil && (isMap && b == nil || isToo && a == nil):
		for _, key := range sorted(both(x, y)) {
			collect(x[key], y[key], at+below(at, key), compared, out)
		}
	default:
		l, isList := a.([]any)
		r, isListToo := b.([]any)
		if !isList || !isListToo || len(l) != len(r) {
			if a == nil {
				a = b
			}
			if compared[at] != "map" || !collectItems(l, r, at, out) {
				note(out, at+soleObject(a), false)
			}
			return
		}
		for i := range l {
			if _, isObject := l[i].(map[string]any); !isObject {
				note(out, at, false)
				return
			}
			collect(l[i], r[i], at+"[*]", compared, out)
		}
	}
}

// collectItems adds the paths of the fields of the items that only one of two lists has. It reports false if the lists are not of objects.
func collectItems(a, b []any, at string, out map[string]bool) bool {
	items := slices.Concat(a, b)
	for _, item := range items {
		if _, isObject := item.(map[string]any); !isObject {
			return false
		}
	}
	for _, item := range items {
		in := func(list []any) bool {
			return slices.ContainsFunc(list, func(other any) bool { return reflect.DeepEqual(item, other) })
		}
		if !in(a) || !in(b) {
			fields := map[string]bool{}
			collect(nil, item, at+"[*]", nil, fields)
			for field := range fields {
				note(out, field, true)
			}
		}
	}
	return len(items) > 0
}

// note adds a field. isItem means that the item that it is in is new.
func note(out map[string]bool, field string, isItem bool) { out[field] = out[field] || isItem }

// soleObject returns the path from an object to the innermost object of those that have nothing but one object.
func soleObject(v any) string {
	object, _ := v.(map[string]any)
	for key, value := range object {
		if _, isObject := value.(map[string]any); isObject && len(object) == 1 {
			return "." + key + soleObject(value)
		}
	}
	return ""
}

// dataMaps are the fields whose keys are data, by their last name.
var dataMaps = []string{"limits", "requests", "nodeSelector", "overhead", "matchLabels"}

func below(at, key string) string {
	last := at[strings.LastIndex(at, ".")+1:]
	switch {
	case last == "labels":
		return fmt.Sprintf("[%q]", key)
	case last == "annotations":
		if domain, _, ok := strings.Cut(key, "/"); ok {
			key = domain + "/"
		}
		return fmt.Sprintf("[%q]", key)
	case slices.Contains(dataMaps, last):
		return ""
	}
	return "." + key
}

func both(x, y map[string]any) map[string]any {
	out := map[string]any{}
	for key := range x {
		out[key] = nil
	}
	for key := range y {
		out[key] = nil
	}
	return out
}

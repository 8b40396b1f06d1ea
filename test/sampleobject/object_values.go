package sampleobject

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// alternatives is how many values of a property are tried if rules refuse the first.
const alternatives = 6

// objects searches for objects: first with the required properties only, then with more.
func (s *search) objects(n node, want int) ([]any, error) {
	f := &found{search: s, node: n, want: want}
	var inside error
	for _, guide := range n.guides() {
		base, err := s.required(n.as(guide))
		if err != nil {
			inside = err
			continue
		}
		if f.try(base) || s.vary(f, n.as(guide), base) {
			break
		}
	}
	if len(f.values) == 0 && f.last == nil && inside != nil {
		// The error of the inner field says more than the error of the object around it.
		return nil, inside
	}
	return f.result()
}

// required makes an object with the properties that its schema requires and does not default.
func (s *search) required(n node) (map[string]any, error) {
	out := map[string]any{}
	if n.schema.XEmbeddedResource {
		out = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": assumedName}}
	}
	names := slices.Sorted(slices.Values(n.schema.Required))
	for _, name := range slices.Compact(names) {
		if _, ok := out[name]; ok || n.path == nil && s.given(name) {
			continue
		}
		child, ok := n.property(name)
		if !ok {
			child, ok = n.member(name)
		}
		if !ok {
			// This property is unknown, or the API server drops it. The check finds out.
			out[name] = map[string]any{}
			continue
		}
		if child.hasDefault() {
			continue
		}
		values, err := s.values(child, 1)
		if err != nil {
			return nil, err
		}
		out[name] = values[0]
	}
	return out, s.fill(n, out)
}

// fill adds members until there are minProperties.
func (s *search) fill(n node, out map[string]any) error {
	if n.schema.MinProperties == nil {
		return nil
	}
	least := int(*n.schema.MinProperties)
	for _, name := range slices.Sorted(maps.Keys(n.schema.Properties)) {
		child, _ := n.property(name)
		if _, ok := out[name]; ok || len(out) >= least || child.hasDefault() {
			continue
		}
		// A property without a valid value may be left out.
		if values, err := s.values(child, 1); err == nil {
			out[name] = values[0]
		}
	}
	for number := 0; len(out) < least && number < least; number++ {
		name := "key-" + strconv.Itoa(number)
		out[name] = "value"
		if child, ok := n.member(name); ok {
			values, err := s.values(child, 1)
			if err != nil {
				return err
			}
			out[name] = values[0]
		}
	}
	return nil
}

// vary tries objects near base: with another value, with one optional property more, with all of them, with two. It reports whether
// the search has ended.
func (s *search) vary(f *found, n node, base map[string]any) bool {
	if s.varyMembers(f, n, base) {
		return true
	}
	names := slices.Sorted(maps.Keys(n.schema.Properties))
	names = slices.DeleteFunc(names, func(name string) bool { return n.path == nil && s.given(name) })
	choices, all := map[string][]any{}, base
	for _, name := range names {
		choices[name] = s.choices(n, name, base)
		for _, value := range choices[name] {
			if f.try(with(base, name, value)) {
				return true
			}
		}
		if _, ok := all[name]; !ok && len(choices[name]) > 0 {
			all = with(all, name, choices[name][0])
		}
	}
	return f.try(all) || pairs(f, base, names, choices, 1) || pairs(f, base, names, choices, alternatives)
}

// choices returns the values to try for a property: only one for an optional object or list, because it may be large.
func (s *search) choices(n node, name string, base map[string]any) []any {
	child, ok := n.property(name)
	if !ok {
		return nil
	}
	want := alternatives
	if _, needed := base[name]; !needed && (child.schema.Type == "object" || child.schema.Type == "array") {
		want = 1
	}
	values, _ := s.values(child, want) // on an error the property stays as it is
	return values
}

// pairs tries objects with two properties set, each to its first few values.
func pairs(f *found, base map[string]any, names []string, choices map[string][]any, few int) bool {
	for i, name := range names {
		for _, value := range choices[name][:min(few, len(choices[name]))] {
			one := with(base, name, value)
			for _, other := range names[i+1:] {
				for _, second := range choices[other][:min(few, len(choices[other]))] {
					if f.try(with(one, other, second)) {
						return true
					}
				}
			}
		}
	}
	return false
}

// varyMembers tries keys of a map.
func (s *search) varyMembers(f *found, n node, base map[string]any) bool {
	for _, name := range append([]string{"key"}, s.words...) {
		child, ok := n.member(name)
		if !ok {
			return false
		}
		values, err := s.values(child, 2)
		if err != nil {
			return false
		}
		for _, value := range values {
			if f.try(with(base, name, value)) {
				return true
			}
		}
	}
	return false
}

// with returns a copy of an object with one value set.
func with(object map[string]any, name string, value any) map[string]any {
	out := runtime.DeepCopyJSON(object)
	out[name] = runtime.DeepCopyJSONValue(value)
	return out
}

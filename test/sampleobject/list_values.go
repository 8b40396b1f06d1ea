package sampleobject

import "slices"

// lists searches for lists: the shortest first, then longer ones.
func (s *search) lists(n node, want int) ([]any, error) {
	f := &found{search: s, node: n, want: want}
	var inside error
	for _, guide := range n.guides() {
		least := 0
		if guide.MinItems != nil {
			least = int(min(*guide.MinItems, maxChecks))
		}
		for count := least; count <= least+2; count++ {
			list, err := s.list(n.as(guide), count)
			if err != nil {
				inside = err
				break
			}
			if f.try(list) {
				return f.result()
			}
		}
		if s.single(f, n.as(guide)) {
			break
		}
	}
	if len(f.values) == 0 && f.last == nil && inside != nil {
		return nil, inside
	}
	return f.result()
}

// single tries lists with one item, with several values of the item.
func (s *search) single(f *found, n node) bool {
	item, ok := n.item()
	if !ok {
		return false
	}
	values, err := s.values(item, alternatives)
	if err != nil {
		return false
	}
	for _, value := range values {
		if f.try([]any{value}) {
			return true
		}
	}
	return false
}

// list makes a list of count items. The items differ if the type of the list requires that.
func (s *search) list(n node, count int) ([]any, error) {
	out := make([]any, 0, count)
	if count == 0 {
		return out, nil
	}
	item, ok := n.item()
	if !ok {
		return slices.Repeat([]any{map[string]any{}}, count), nil
	}
	kind := ""
	if n.schema.XListType != nil {
		kind = *n.schema.XListType
	}
	if kind == "map" {
		return s.keyed(n, item, count)
	}
	want := 1
	if kind == "set" {
		want = count
	}
	values, err := s.values(item, want)
	if err != nil {
		return nil, err
	}
	for i := range count {
		// If a set has too few values, values repeat, and the check of the complete list refuses it.
		out = append(out, values[i%len(values)])
	}
	return out, nil
}

// keyed makes items with different keys: copies of one item with other values of the keys.
func (s *search) keyed(n, item node, count int) ([]any, error) {
	values, err := s.values(item, 1)
	if err != nil {
		return nil, err
	}
	first, ok := values[0].(map[string]any)
	if !ok {
		return nil, nil
	}
	items := []map[string]any{first}
	for _, key := range n.schema.XListMapKeys {
		child, ok := item.property(key)
		if !ok {
			continue
		}
		choices, err := s.values(child, count)
		if err != nil {
			return nil, err
		}
		var next []map[string]any
		for _, choice := range choices {
			for _, one := range items {
				if changed := with(one, key, choice); s.check(item, changed) == nil {
					next = append(next, changed)
				}
			}
		}
		if len(next) > 0 {
			items = next[:min(count, len(next))]
		}
	}
	out := make([]any, 0, count)
	for i := range count {
		out = append(out, items[i%len(items)])
	}
	return out, nil
}

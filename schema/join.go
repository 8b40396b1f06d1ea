package schema

import "slices"

// deepest bounds the depth to which trees are merged: what is recursive is none of what bodies share.
const deepest = 32

// joined returns n, which says how values compare, with the permissions of the other tree beside its own. It is n itself
// if it has them all.
func joined(n, other *Node, depth int) *Node {
	if n == other || depth > deepest {
		return n
	}
	out := *n
	changed := false
	for _, p := range other.permissions {
		if !says(out.permissions, p) {
			// What the body says of the same verb comes second, and counts as a barrier all the same.
			out.permissions, changed = append(slices.Clone(out.permissions), p), true
		}
	}
	if out.emits == "" && other.emits != "" {
		out.emits, changed = other.emits, true
	}
	if n.list != nil && other.list != nil && n.list.item != nil && other.list.item != nil {
		if item := joined(n.list.item, other.list.item, depth+1); item != n.list.item {
			list := *n.list
			list.item = item
			out.list, changed = &list, true
		}
	}
	if n.mapping != nil && other.mapping != nil {
		if m := n.mapping.joined(other.mapping, depth); m != n.mapping {
			out.mapping, changed = m, true
		}
	}
	if !changed {
		return n
	}
	out.unbarred = !out.mayBarBelow()
	return &out
}

func (m *Map) joined(other *Map, depth int) *Map {
	out := *m
	changed := false
	for _, name := range sortedKeys(m.fields) {
		if theirs := other.fields[name]; theirs != nil {
			if n := joined(m.fields[name], theirs, depth+1); n != m.fields[name] {
				out.fields, changed = out.with(name, n).fields, true
			}
		}
	}
	if m.value != nil && other.value != nil {
		if n := joined(m.value, other.value, depth+1); n != m.value {
			out.value, changed = n, true
		}
		// A key that the other singles out is singled out here.
		for _, name := range sortedKeys(other.keys) {
			mine := m.keys[name]
			if mine == nil {
				mine = m.value
			}
			if n := joined(mine, other.keys[name], depth+1); n != m.keys[name] {
				keys := make(map[string]*Node, len(out.keys)+1)
				for k, v := range out.keys {
					keys[k] = v
				}
				keys[name] = n
				out.keys, changed = keys, true
			}
		}
		for _, name := range sortedKeys(m.keys) {
			if other.keys[name] != nil {
				continue
			}
			if n := joined(m.keys[name], other.value, depth+1); n != m.keys[name] {
				keys := make(map[string]*Node, len(out.keys))
				for k, v := range out.keys {
					keys[k] = v
				}
				keys[name] = n
				out.keys, changed = keys, true
			}
		}
	}
	if !changed {
		return m
	}
	return &out
}

// with returns a copy of the map with another node for one field.
func (m *Map) with(name string, n *Node) *Map {
	out := *m
	out.fields = make(map[string]*Node, len(m.fields)+1)
	for field, node := range m.fields {
		out.fields[field] = node
	}
	out.fields[name] = n
	return &out
}

func sameVerb(a, b *Permission) bool { return a.verb == b.verb && a.parameter == b.parameter }

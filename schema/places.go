package schema

import "github.com/fieldperm/fieldperm/schema/fieldpath"

// Guarded visits every place of the kind that has permissions, parents first and names in order. It reports false if it stopped at the
// limit. Walk visits a node once. Guarded visits a node once for each path that leads to it, such as containers and initContainers. No
// path contains a node twice, so the visit of a recursive schema ends. At most limit places are visited, because a schema may unfold
// without bound.
func (k *Kind) Guarded(limit int, visit func(fieldpath.Pattern, *Node)) bool {
	u := &unfolding{left: limit, leads: leads(k.Root), within: map[*Node]bool{}, visit: visit}
	u.enter(nil, k.Root)
	return u.left >= 0
}

type unfolding struct {
	left int
	// leads are the nodes from which a permission can be reached; within are the nodes on the current path.
	leads, within map[*Node]bool
	visit         func(fieldpath.Pattern, *Node)
}

func (u *unfolding) enter(p fieldpath.Pattern, n *Node) {
	if !u.leads[n] || u.within[n] || u.left < 0 {
		return
	}
	if u.left--; u.left < 0 {
		return
	}
	u.within[n] = true
	if len(n.permissions) > 0 {
		u.visit(p, n)
	}
	children(n, func(e fieldpath.Element, child *Node) { u.enter(p.Child(e), child) })
	delete(u.within, n)
}

// leads returns the nodes at and below root that have permissions or from which a node with permissions can be reached.
func leads(root *Node) map[*Node]bool {
	above := map[*Node][]*Node{}
	out := map[*Node]bool{}
	var next []*Node
	each(root, map[*Node]bool{}, func(n *Node) {
		children(n, func(_ fieldpath.Element, child *Node) { above[child] = append(above[child], n) })
		if len(n.permissions) > 0 {
			out[n] = true
			next = append(next, n)
		}
	})
	for len(next) > 0 {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range above[n] {
			if !out[parent] {
				out[parent] = true
				next = append(next, parent)
			}
		}
	}
	return out
}

// children visits the nodes directly below a node, in the order of Walk.
func children(n *Node, visit func(fieldpath.Element, *Node)) {
	if n.list != nil && n.list.item != nil {
		visit(fieldpath.Element{Any: true}, n.list.item)
	}
	if n.mapping == nil {
		return
	}
	for _, name := range sortedKeys(n.mapping.fields) {
		visit(fieldpath.Element{Name: name}, n.mapping.fields[name])
	}
	for _, name := range sortedKeys(n.mapping.keys) {
		visit(fieldpath.Element{Name: name}, n.mapping.keys[name])
	}
	if n.mapping.value != nil {
		visit(fieldpath.Element{Any: true}, n.mapping.value)
	}
}

// hasChild reports whether a node that children would visit fits. It needs no order: to sort names took a tenth of the time of a compile.
func hasChild(n *Node, fits func(*Node) bool) bool {
	if n.list != nil && n.list.item != nil && fits(n.list.item) {
		return true
	}
	if n.mapping == nil {
		return false
	}
	for _, below := range []map[string]*Node{n.mapping.fields, n.mapping.keys} {
		for _, child := range below {
			if fits(child) {
				return true
			}
		}
	}
	return n.mapping.value != nil && fits(n.mapping.value)
}

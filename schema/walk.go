package schema

import (
	"iter"
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

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
	if len(n.Permissions()) > 0 {
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
	root.Each(func(n *Node) {
		children(n, func(_ fieldpath.Element, child *Node) { above[child] = append(above[child], n) })
		if len(n.Permissions()) > 0 {
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

// Walk visits every node of the kind once, each with a pattern that leads to it.
func (k *Kind) Walk(visit func(fieldpath.Pattern, *Node)) {
	walk(k.Root, nil, map[*Node]bool{}, visit)
}

// walk visits every node reachable from n once, with a pattern that leads to it.
func walk(n *Node, p fieldpath.Pattern, seen map[*Node]bool, visit func(fieldpath.Pattern, *Node)) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	visit(p, n)
	children(n, func(e fieldpath.Element, child *Node) {
		if !seen[child] {
			walk(child, p.Child(e), seen, visit)
		}
	})
}

// Each visits the nodes that Walk visits, at and below a node, in the same order, without their patterns, which need an allocation for each step.
func (n *Node) Each(visit func(*Node)) { each(n, map[*Node]bool{}, visit) }

func each(n *Node, seen map[*Node]bool, visit func(*Node)) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	visit(n)
	children(n, func(_ fieldpath.Element, child *Node) { each(child, seen, visit) })
}

// Children returns the nodes directly below a node with the steps to them: the items of a list, then fields and singled-out keys of an
// object by name, then its other values. Below a node of unknown fields there are none.
func (n *Node) Children() iter.Seq2[fieldpath.Element, *Node] {
	return func(yield func(fieldpath.Element, *Node) bool) {
		done := false
		children(n, func(e fieldpath.Element, child *Node) {
			done = done || child != unknown && !yield(e, child)
		})
	}
}

// Below returns what Children returns, and the nodes of unknown fields.
func (n *Node) Below() iter.Seq2[fieldpath.Element, *Node] {
	return func(yield func(fieldpath.Element, *Node) bool) {
		done := false
		children(n, func(e fieldpath.Element, child *Node) { done = done || !yield(e, child) })
	}
}

// children visits the nodes directly below a node, in the order of Walk.
func children(n *Node, visit func(fieldpath.Element, *Node)) {
	if n.List() != nil && n.List().item != nil {
		visit(fieldpath.Element{Any: true}, n.List().item)
	}
	if n.Map() == nil {
		return
	}
	for _, name := range sortedKeys(n.Map().parts.Fields) {
		visit(fieldpath.Element{Name: name}, n.Map().parts.Fields[name])
	}
	for _, name := range sortedKeys(n.Map().parts.Keys) {
		visit(fieldpath.Element{Name: name}, n.Map().parts.Keys[name])
	}
	if n.Map().parts.Value != nil {
		visit(fieldpath.Element{Any: true}, n.Map().parts.Value)
	}
}

// Way returns the nodes on the way to a field, from the root to the node of the field. If the kind does not declare the field, the way ends at the
// node of unknown fields, or at a value without parts. It also ends at a map of which it means all keys, because some may have nodes of their own.
func (k *Kind) Way(path string) []*Node {
	way := []*Node{k.Root}
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		return way
	}
	for _, e := range p {
		n := way[len(way)-1]
		if e.Any && n.List() == nil || !e.Any && n.Map() == nil {
			break
		}
		next := n.Step(e)
		if next == nil {
			return append(way, unknown)
		}
		way = append(way, next)
	}
	return way
}

func sortedKeys(of map[string]*Node) []string {
	out := make([]string, 0, len(of))
	for key := range of {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

package schema

import (
	"fmt"
	"maps"
	"slices"
)

// join merges the nodes of one value in several trees. The first node is that of the body, which says how values compare. The others are
// those of the objects that the value becomes a part of.
func join(nodes []*Node) *Node { return joining{}.join(nodes) }

// joining caches the joined nodes by their parts, because a tree may be recursive.
type joining map[string]*Node

func (j joining) join(nodes []*Node) *Node {
	own := nodes[0]
	if !slices.ContainsFunc(nodes, func(n *Node) bool { return n != own }) {
		return own
	}
	key := fmt.Sprint(nodes)
	if known := j[key]; known != nil {
		return known
	}
	out := *own
	out.unbarred, out.verbless = false, false
	j[key] = &out
	out.permissions, out.trees = permissionsOf(nodes)
	for _, n := range nodes {
		if out.emits == "" {
			out.emits = n.emits
		}
	}
	below := func(of func(*Node) *Node) *Node {
		next := make([]*Node, len(nodes))
		for i, n := range nodes {
			next[i] = of(n)
		}
		return j.join(next)
	}
	if own.list != nil {
		list := *own.list
		list.item = below((*Node).items)
		out.list = &list
	}
	if own.mapping != nil {
		mapping := *own.mapping
		mapping.fields, mapping.keys = map[string]*Node{}, map[string]*Node{}
		for _, name := range singled(nodes) {
			to := mapping.keys
			if own.mapping.IsField(name) {
				to = mapping.fields
			} else if mapping.value == nil {
				continue
			}
			to[name] = below(func(n *Node) *Node { return n.named(name) })
		}
		if mapping.value != nil {
			mapping.value = below((*Node).values)
		}
		mapping.folded = mapping.foldedNames()
		out.mapping = &mapping
	}
	out.unbarred, out.verbless = !out.mayBarBelow(), !out.hasVerbsBelow()
	return &out
}

// items returns the node of the items of a list at n.
func (n *Node) items() *Node {
	if n.list == nil || n.list.item == nil {
		return unknown
	}
	return n.list.item
}

// values returns the node of the values of a map at n, except for the keys that it singles out.
func (n *Node) values() *Node {
	if n.mapping == nil || n.mapping.value == nil {
		return unknown
	}
	return n.mapping.value
}

// named returns the node of one field or key of an object at n.
func (n *Node) named(name string) *Node {
	if n.mapping == nil {
		return unknown
	}
	return n.mapping.Child(name)
}

// singled returns the fields and the keys that any of the nodes has.
func singled(nodes []*Node) []string {
	var out []string
	for _, n := range nodes {
		if n.mapping != nil {
			out = slices.AppendSeq(slices.AppendSeq(out, maps.Keys(n.mapping.fields)), maps.Keys(n.mapping.keys))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// permissionsOf returns all permissions of a value without duplicates, and its permissions in each tree.
func permissionsOf(nodes []*Node) (all []*Permission, trees [][]*Permission) {
	own, theirs, found := nodes[0].permissions, []*Permission(nil), false
	for _, n := range nodes {
		trees, found = append(trees, n.permissions), found || len(n.permissions) > 0
	}
	if !found {
		return nil, nil
	}
	for _, n := range nodes[1:] {
		for _, p := range n.permissions {
			barred := func(q *Permission) bool { return sameVerb(p, q) && q.MayBar() && !p.MayBar() }
			if !says(theirs, p) && !slices.ContainsFunc(own, barred) {
				theirs = append(theirs, p)
			}
		}
	}
	for _, p := range own {
		if !says(theirs, p) {
			all = append(all, p)
		}
	}
	return append(all, theirs...), trees
}

// says reports whether permissions already include everything that p demands: its verb, its barrier if it can be one, and that it covers nothing if it
// only bars.
func says(permissions []*Permission, p *Permission) bool {
	return slices.ContainsFunc(permissions, func(q *Permission) bool {
		return q == p || sameVerb(q, p) && (!p.MayBar() || q.excluded) && (p.mode == covers || p.mode == q.mode)
	})
}

func sameVerb(a, b *Permission) bool { return a.verb == b.verb && a.parameter == b.parameter }

// alike reports whether two trees guard the same values in the same way. seen are the pairs that are already being compared.
func alike(a, b *Node, seen map[[2]*Node]bool) bool {
	if a == b || seen[[2]*Node{a, b}] {
		return true
	}
	seen[[2]*Node{a, b}] = true
	if a.emits != b.emits || !slices.EqualFunc(a.permissions, b.permissions, sameGuard) {
		return false
	}
	if a.list != nil && !alike(a.items(), b.items(), seen) || a.mapping != nil && !alike(a.values(), b.values(), seen) {
		return false
	}
	return a.mapping == nil || !slices.ContainsFunc(singled([]*Node{a, b}), func(name string) bool { return !alike(a.named(name), b.named(name), seen) })
}

// sameGuard reports whether two permissions have the same effect. Two expressions are compared by identity only.
func sameGuard(a, b *Permission) bool {
	return a == b || sameVerb(a, b) && a.treatment == b.treatment && a.mode == b.mode && a.expression == nil && b.expression == nil &&
		(a.excluded && b.excluded || !a.MayBar() && !b.MayBar())
}

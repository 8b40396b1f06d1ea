package compile

import (
	"fmt"
	"slices"

	"github.com/fieldperm/fieldperm/schema"
)

// join merges the nodes of one value in several trees. The first node is that of the body, which says how values compare. The others are
// those of the objects that the value becomes a part of.
func join(nodes []*schema.Node) *schema.Node { return joining{}.join(nodes) }

// joining caches the joined nodes by their parts, because a tree may be recursive.
type joining map[string]*schema.Node

func (j joining) join(nodes []*schema.Node) *schema.Node {
	own := nodes[0]
	if !slices.ContainsFunc(nodes, func(n *schema.Node) bool { return n != own }) {
		return own
	}
	key := fmt.Sprint(nodes)
	if known := j[key]; known != nil {
		return known
	}
	out, parts := new(schema.Node), own.Parts()
	j[key] = out
	parts.Permissions, parts.Trees = joinPermissions(nodes)
	for _, n := range nodes {
		if parts.Emits == "" {
			parts.Emits = n.Emits()
		}
	}
	below := func(of func(*schema.Node) *schema.Node) *schema.Node {
		next := make([]*schema.Node, len(nodes))
		for i, n := range nodes {
			next[i] = of(n)
		}
		return j.join(next)
	}
	if l := own.List(); l != nil {
		parts.List = schema.NewList(l.Atomic(), l.Keys(), below(items))
	}
	if own.Map() != nil {
		m := own.Map().Parts()
		m.Fields, m.Keys = map[string]*schema.Node{}, map[string]*schema.Node{}
		for _, name := range singled(nodes) {
			to := m.Keys
			if own.Map().IsField(name) {
				to = m.Fields
			} else if m.Value == nil {
				continue
			}
			to[name] = below(func(n *schema.Node) *schema.Node { return named(n, name) })
		}
		if m.Value != nil {
			m.Value = below(values)
		}
		parts.Map = schema.NewMap(m)
	}
	parts.Unbarred, parts.Verbless = !mayBarBelow(parts), !hasVerbsBelow(parts)
	out.Make(parts)
	return out
}

// items returns the node of the items of a list at n.
func items(n *schema.Node) *schema.Node {
	if n.List() == nil || n.List().Item() == nil {
		return schema.Unknown()
	}
	return n.List().Item()
}

// values returns the node of the values of a map at n, except for the keys that it singles out.
func values(n *schema.Node) *schema.Node {
	if n.Map() == nil || n.Map().Parts().Value == nil {
		return schema.Unknown()
	}
	return n.Map().Parts().Value
}

// named returns the node of one field or key of an object at n.
func named(n *schema.Node, name string) *schema.Node {
	if n.Map() == nil {
		return schema.Unknown()
	}
	return n.Map().Child(name)
}

// singled returns the fields and the keys that any of the nodes has.
func singled(nodes []*schema.Node) []string {
	var out []string
	for _, n := range nodes {
		if n.Map() != nil {
			out = append(out, n.Map().Names()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// joinPermissions returns all permissions of a value without duplicates, and its permissions in each tree.
func joinPermissions(nodes []*schema.Node) (all []*schema.Permission, trees [][]*schema.Permission) {
	own, theirs, found := nodes[0].Permissions(), []*schema.Permission(nil), false
	for _, n := range nodes {
		trees, found = append(trees, n.Permissions()), found || len(n.Permissions()) > 0
	}
	if !found {
		return nil, nil
	}
	for _, n := range nodes[1:] {
		for _, p := range n.Permissions() {
			barred := func(q *schema.Permission) bool { return sameVerb(p, q) && q.MayBar() && !p.MayBar() }
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
func says(permissions []*schema.Permission, p *schema.Permission) bool {
	return slices.ContainsFunc(permissions, func(q *schema.Permission) bool {
		return q == p || sameVerb(q, p) && (!p.MayBar() || q.Excluded()) && (!p.BarsOnly() || q.BarsOnly())
	})
}

func sameVerb(a, b *schema.Permission) bool {
	return a.Base() == b.Base() && a.ParameterName() == b.ParameterName()
}

// alike reports whether two trees guard the same values in the same way. seen are the pairs that are already being compared.
func alike(a, b *schema.Node, seen map[[2]*schema.Node]bool) bool {
	if a == b || seen[[2]*schema.Node{a, b}] {
		return true
	}
	seen[[2]*schema.Node{a, b}] = true
	if a.Emits() != b.Emits() || !slices.EqualFunc(a.Permissions(), b.Permissions(), sameGuard) {
		return false
	}
	if a.List() != nil && !alike(items(a), items(b), seen) || a.Map() != nil && !alike(values(a), values(b), seen) {
		return false
	}
	return a.Map() == nil || !slices.ContainsFunc(singled([]*schema.Node{a, b}), func(name string) bool { return !alike(named(a, name), named(b, name), seen) })
}

// sameGuard reports whether two permissions have the same effect. Two expressions are compared by identity only.
func sameGuard(a, b *schema.Permission) bool {
	return a == b || sameVerb(a, b) && a.TakesPrefix() == b.TakesPrefix() && a.BarsOnly() == b.BarsOnly() && a.Expression() == "" && b.Expression() == "" &&
		(a.Excluded() && b.Excluded() || !a.MayBar() && !b.MayBar())
}

package schema

import "slices"

// blind makes the trees of objects that requests change and do not show: a Binding has no field of the existing Pod. A condition can then
// be evaluated only if it reads just the new value and that value is a scalar. A map or a list may be merged with the existing one, so
// its new value differs from that in the request. All other barriers always hold. blind caches the new nodes by the nodes that they
// replace, because a tree may be recursive.
type blind map[*Node]*Node

// node returns the node without such conditions, or the node itself if there are none at or below it.
func (b blind) node(n *Node) *Node {
	if made := b[n]; made != nil {
		return made
	}
	if n.unbarred && !slices.ContainsFunc(n.permissions, (*Permission).Conditional) {
		return n
	}
	out := *n
	b[n], out.permissions = &out, b.permissions(n, n.permissions)
	out.trees = b.trees(n, n.trees)
	if n.list != nil && n.list.item != nil {
		list := *n.list
		list.item, out.list = b.node(list.item), &list
	}
	if n.mapping != nil {
		mapping := *n.mapping
		mapping.fields, mapping.keys = b.all(mapping.fields), b.all(mapping.keys)
		if mapping.value != nil {
			mapping.value = b.node(mapping.value)
		}
		out.mapping = &mapping
	}
	return &out
}

func (b blind) all(nodes map[string]*Node) map[string]*Node {
	if nodes == nil {
		return nil
	}
	out := make(map[string]*Node, len(nodes))
	for name, n := range nodes {
		out[name] = b.node(n)
	}
	return out
}

// permissions returns the permissions of a node with barriers for all values in place of such conditions.
func (b blind) permissions(n *Node, permissions []*Permission) []*Permission {
	isScalar := n.list == nil && n.mapping == nil
	return whereConditional(permissions, func(p *Permission) *Permission {
		if isScalar && !p.readsOld() {
			return p
		}
		return p.always()
	})
}

// trees returns the permissions of a node in each tree.
func (b blind) trees(n *Node, trees [][]*Permission) [][]*Permission {
	var out [][]*Permission
	for _, tree := range trees {
		out = append(out, b.permissions(n, tree))
	}
	return out
}

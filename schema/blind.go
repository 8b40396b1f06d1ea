package schema

import "slices"

// blind makes the trees of objects that requests change and do not show: a Binding has no field of the Pod that is there. Of a
// condition on values only what reads nothing but the new value, and that of a scalar, can be told then: a map or a list may be merged into
// what is there, so that its new value is not that of the request. All other barriers hold always. The nodes that were made are kept by
// those that they are of: a tree may be recursive.
type blind map[*Node]*Node

// node returns the node itself if nothing at it or below it has such a condition.
func (b blind) node(n *Node) *Node {
	if made := b[n]; made != nil {
		return made
	}
	if n.unbarred && !slices.ContainsFunc(n.permissions, (*Permission).Conditional) {
		return n
	}
	out := *n
	b[n], out.permissions = &out, b.permissions(n, n.permissions)
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

// permissions returns those of a node with the barriers that hold whatever the values. Each is a permission of its own.
func (b blind) permissions(n *Node, permissions []*Permission) []*Permission {
	isScalar := n.list == nil && n.mapping == nil
	return whereConditional(permissions, func(p *Permission) *Permission {
		if isScalar && !p.readsOld() {
			return p
		}
		return p.always()
	})
}

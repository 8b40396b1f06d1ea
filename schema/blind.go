package schema

import "slices"

// blind makes the trees of objects that requests change and do not show: a Binding has no field of the existing Pod. A condition that comes to
// read the old value counts as true there. blind caches the new nodes by the nodes that they replace, because a tree may be recursive.
type blind map[*Node]*Node

// node returns the node with such permissions, or the node itself if no barrier at or below it has a condition.
func (b blind) node(n *Node) *Node {
	if made := b[n]; made != nil {
		return made
	}
	if n.unbarred && !slices.ContainsFunc(n.permissions, (*Permission).Conditional) {
		return n
	}
	out := *n
	b[n], out.permissions = &out, b.permissions(n.permissions)
	out.trees = b.trees(n.trees)
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

// permissions returns the permissions of a node whose old value is not known.
func (b blind) permissions(permissions []*Permission) []*Permission {
	return whereConditional(permissions, func(p *Permission) *Permission {
		one := *p
		one.unseen = true
		return &one
	})
}

// trees returns the permissions of a node in each tree.
func (b blind) trees(trees [][]*Permission) [][]*Permission {
	var out [][]*Permission
	for _, tree := range trees {
		out = append(out, b.permissions(tree))
	}
	return out
}

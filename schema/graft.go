package schema

import (
	"slices"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// graft adds the permissions of objects' trees to the tree of a body.
type graft struct {
	body *Node
	// unseen means that requests do not show the objects that they change.
	unseen bool
	// zero is the meaning of an absent number in the body.
	zero zero
	// onto are the places of the body, with the nodes of the objects' fields that they become.
	onto []grafted
}

// grafted is one place. If the object has several kinds or versions, a field of the body becomes a field of several objects.
type grafted struct {
	at      fieldpath.Pattern
	objects []*Node
}

// add grafts a field of an object. The node gets the permissions above it in the object as its own, because the path to the body's field
// is a different one.
func (g *graft) add(f endpoint.Field, object *Node) {
	from, err := fieldpath.ParsePattern(f.From)
	if err != nil {
		return
	}
	to, err := fieldpath.ParsePattern(f.To)
	if err != nil {
		return
	}
	permissions, node, ok := reach(object, to)
	if !ok {
		return
	}
	if g.unseen {
		b := blind{}
		permissions, node = b.permissions(permissions), b.node(node)
	}
	if g.zero != nothingIsZero {
		permissions = withZero(permissions, g.zero)
	}
	n := *node
	n.permissions = permissions
	for i := range g.onto {
		if g.onto[i].at.String() == from.String() {
			g.onto[i].objects = append(g.onto[i].objects, &n)
			return
		}
	}
	g.onto = append(g.onto, grafted{from, []*Node{&n}})
}

// reach returns the node at a path, and its permissions after those above it. Keys of maps on the path are parameters that the body does
// not emit.
func reach(n *Node, path fieldpath.Pattern) (permissions []*Permission, at *Node, ok bool) {
	emitted := map[string]string{}
	for _, e := range path {
		permissions = append(permissions, spelled(n.permissions, emitted)...)
		if n.emits != "" && !e.Any && n.mapping != nil && !n.mapping.IsField(e.Name) {
			emitted[n.emits] = e.Name
		}
		switch {
		case e.Any && n.list != nil:
			n = n.list.item
		case e.Any && n.mapping != nil && n.mapping.value != nil:
			n = n.mapping.value
		case !e.Any && n.mapping != nil:
			n = n.mapping.Child(e.Name)
		default:
			return nil, nil, false
		}
	}
	// The body has the verb of the root as well.
	permissions = slices.DeleteFunc(permissions, func(p *Permission) bool { return p.verb.Name() == "*" })
	return append(permissions, spelled(n.permissions, emitted)...), n, true
}

// spelled returns the permissions; each parameter that is already known becomes a permission of its own.
func spelled(permissions []*Permission, emitted map[string]string) []*Permission {
	out := make([]*Permission, 0, len(permissions))
	for _, p := range permissions {
		v, ok := p.Parameterized(func(name string) (string, bool) { value, ok := emitted[name]; return value, ok })
		if !ok {
			out = append(out, p)
			continue
		}
		base := *p
		base.parameter, base.treatment, base.expression, base.expressionText = "", "", nil, ""
		out = append(out, &base, &Permission{verb: v, mode: p.mode, powers: p.powers, origins: p.origins})
	}
	return out
}

// root returns the body's tree with everything that was added, nil if the additions change nothing.
func (g *graft) root() *Node {
	root := g.body
	for i := range g.onto {
		if one := &g.onto[i]; one.adds(root) {
			root = one.into(root, one.at, true, nil)
		}
	}
	if root == g.body {
		return nil
	}
	return root
}

// adds removes the objects that add nothing to the body or to another object, and reports whether any object is left.
func (o *grafted) adds(root *Node) bool {
	permissions, node, ok := reach(root, o.at)
	if !ok {
		return false
	}
	own := *node
	own.permissions = permissions
	known := []*Node{&own}
	for _, object := range o.objects {
		if !slices.ContainsFunc(known, func(n *Node) bool { return alike(n, object, map[[2]*Node]bool{}) }) {
			known = append(known, object)
		}
	}
	o.objects = known[1:]
	return len(o.objects) > 0
}

// into returns a copy of n in which the node at the end of the path has the added permissions. held are permissions above n that move
// down to that node.
func (o *grafted) into(n *Node, path fieldpath.Pattern, isRoot bool, held []*Permission) *Node {
	out := *n
	if len(path) == 0 {
		out.permissions = slices.Concat(held, n.permissions)
		return join(append([]*Node{&out}, o.objects...))
	}
	if n.mapping == nil || path[0].Any {
		return n
	}
	if len(n.mapping.fields) == 1 && n.mapping.value == nil && !isRoot {
		// The only field here belongs to the object. The object's permissions replace those of the values around it, except for barriers.
		held = slices.Concat(held, slices.DeleteFunc(slices.Clone(n.permissions), func(p *Permission) bool { return !p.MayBar() }))
		out.permissions = nil
	}
	out.mapping = n.mapping.with(path[0].Name, o.into(n.mapping.Child(path[0].Name), path[1:], false, held))
	out.unbarred, out.verbless = !out.mayBarBelow(), !out.hasVerbsBelow()
	return &out
}

// at returns a copy of the tree with the field changed that the names lead to. If they lead nowhere, it returns the tree itself.
func (n *Node) at(names []string, change func(Node) *Node) *Node {
	if len(names) == 0 {
		return change(*n)
	}
	if n.mapping == nil || n.mapping.fields[names[0]] == nil {
		return n
	}
	out := *n
	out.mapping = n.mapping.with(names[0], n.mapping.fields[names[0]].at(names[1:], change))
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

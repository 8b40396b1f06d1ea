package compile

import (
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// graft adds the permissions of objects' trees to the tree of a body.
type graft struct {
	body *schema.Node
	// unseen means that requests do not show the objects that they change.
	unseen bool
	// zero is the meaning of an absent number in the body.
	zero schema.Zero
	// onto are the places of the body, with the nodes of the objects' fields that they become.
	onto []grafted
}

// grafted is one place. If the object has several kinds or versions, a field of the body becomes a field of several objects.
type grafted struct {
	at      fieldpath.Pattern
	objects []*schema.Node
}

// add grafts a field of an object. The node gets the permissions above it in the object as its own, because the path to the body's field
// is a different one.
func (g *graft) add(f endpoint.Field, object *schema.Node) {
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
	if g.zero != schema.NothingIsZero {
		permissions = withZero(permissions, g.zero)
	}
	n := withPermissions(node, permissions)
	for i := range g.onto {
		if g.onto[i].at.String() == from.String() {
			g.onto[i].objects = append(g.onto[i].objects, n)
			return
		}
	}
	g.onto = append(g.onto, grafted{from, []*schema.Node{n}})
}

// reach returns the node at a path, and its permissions after those above it. Keys of maps on the path are parameters that the body does
// not emit.
func reach(n *schema.Node, path fieldpath.Pattern) (permissions []*schema.Permission, at *schema.Node, ok bool) {
	emitted := map[string]string{}
	for _, e := range path {
		permissions = append(permissions, spelled(n.Permissions(), emitted)...)
		if n.Emits() != "" && !e.Any && n.Map() != nil && !n.Map().IsField(e.Name) {
			emitted[n.Emits()] = e.Name
		}
		next := n.Step(e)
		switch {
		case next != nil:
			n = next
		case !e.Any && n.Map() != nil:
			n = schema.Unknown()
		default:
			return nil, nil, false
		}
	}
	// The body has the verb of the root as well.
	permissions = slices.DeleteFunc(permissions, func(p *schema.Permission) bool { return p.Base().Name() == "*" })
	return append(permissions, spelled(n.Permissions(), emitted)...), n, true
}

// spelled returns the permissions; each parameter that is already known becomes a permission of its own.
func spelled(permissions []*schema.Permission, emitted map[string]string) []*schema.Permission {
	out := make([]*schema.Permission, 0, len(permissions))
	for _, p := range permissions {
		v, ok := p.Parameterized(func(name string) (string, bool) { value, ok := emitted[name]; return value, ok })
		if !ok {
			out = append(out, p)
			continue
		}
		base := p.Parts()
		base.Parameter, base.TakesPrefix, base.Expression = "", false, schema.Expression{}
		out = append(out, schema.NewPermission(base), schema.NewPermission(schema.PermissionParts{Verb: v, BarsOnly: p.BarsOnly(), Powers: p.Powers(), Origins: p.Origins()}))
	}
	return out
}

// root returns the body's tree with everything that was added, nil if the additions change nothing.
func (g *graft) root() *schema.Node {
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
func (o *grafted) adds(root *schema.Node) bool {
	permissions, node, ok := reach(root, o.at)
	if !ok {
		return false
	}
	known := []*schema.Node{withPermissions(node, permissions)}
	for _, object := range o.objects {
		if !slices.ContainsFunc(known, func(n *schema.Node) bool { return alike(n, object, map[[2]*schema.Node]bool{}) }) {
			known = append(known, object)
		}
	}
	o.objects = known[1:]
	return len(o.objects) > 0
}

// into returns a copy of n in which the node at the end of the path has the added permissions. held are permissions above n that move
// down to that node.
func (o *grafted) into(n *schema.Node, path fieldpath.Pattern, isRoot bool, held []*schema.Permission) *schema.Node {
	if len(path) == 0 {
		out := withPermissions(n, slices.Concat(held, n.Permissions()))
		return join(append([]*schema.Node{out}, o.objects...))
	}
	if n.Map() == nil || path[0].Any {
		return n
	}
	out := n.Parts()
	if m := n.Map().Parts(); len(m.Fields) == 1 && m.Value == nil && !isRoot {
		// The only field here belongs to the object. The object's permissions replace those of the values around it, except for barriers.
		held = slices.Concat(held, slices.DeleteFunc(slices.Clone(n.Permissions()), func(p *schema.Permission) bool { return !p.MayBar() }))
		out.Permissions = nil
	}
	out.Map = withField(n.Map(), path[0].Name, o.into(n.Map().Child(path[0].Name), path[1:], false, held))
	out.Unbarred, out.Verbless = !mayBarBelow(out), !hasVerbsBelow(out)
	return schema.NewNode(out)
}

// changedAt returns a copy of a tree with the field changed that the names lead to. If they lead nowhere, it returns the tree itself.
func changedAt(n *schema.Node, names []string, change func(*schema.Node) *schema.Node) *schema.Node {
	if len(names) == 0 {
		return change(n)
	}
	if n.Map() == nil || !n.Map().IsField(names[0]) {
		return n
	}
	out := n.Parts()
	out.Map = withField(n.Map(), names[0], changedAt(n.Map().Child(names[0]), names[1:], change))
	return schema.NewNode(out)
}

// withField returns a copy of a map with another node for one field.
func withField(m *schema.Map, name string, n *schema.Node) *schema.Map {
	out := m.Parts()
	out.Fields = make(map[string]*schema.Node, len(out.Fields)+1)
	maps.Copy(out.Fields, m.Parts().Fields)
	out.Fields[name] = n
	return schema.NewMap(out)
}

// withPermissions returns a copy of a node with other permissions.
func withPermissions(n *schema.Node, permissions []*schema.Permission) *schema.Node {
	out := n.Parts()
	out.Permissions = permissions
	return schema.NewNode(out)
}

// withZero returns the permissions for a number of which the absent value has a meaning.
func withZero(permissions []*schema.Permission, is schema.Zero) []*schema.Permission {
	return whereConditional(permissions, func(p *schema.PermissionParts) { p.Zero = is })
}

// whereConditional returns the permissions with every conditional barrier changed.
func whereConditional(permissions []*schema.Permission, change func(*schema.PermissionParts)) []*schema.Permission {
	out := slices.Clone(permissions)
	for i, p := range out {
		if p.Conditional() {
			one := p.Parts()
			change(&one)
			out[i] = schema.NewPermission(one)
		}
	}
	return out
}

// blind makes the trees of objects that requests change and do not show: a Binding has no field of the existing Pod. A condition that comes to
// read the old value counts as true there. blind caches the new nodes by the nodes that they replace, because a tree may be recursive.
type blind map[*schema.Node]*schema.Node

// node returns the node with such permissions, or the node itself if no barrier at or below it has a condition.
func (b blind) node(n *schema.Node) *schema.Node {
	if made := b[n]; made != nil {
		return made
	}
	if !n.MayBarWithin() && !slices.ContainsFunc(n.Permissions(), (*schema.Permission).Conditional) {
		return n
	}
	out, parts := new(schema.Node), n.Parts()
	b[n], parts.Permissions = out, b.permissions(parts.Permissions)
	parts.Trees = nil
	for _, tree := range n.Trees() {
		parts.Trees = append(parts.Trees, b.permissions(tree))
	}
	if l := n.List(); l != nil && l.Item() != nil {
		parts.List = schema.NewList(l.Atomic(), l.Keys(), b.node(l.Item()))
	}
	if n.Map() != nil {
		m := n.Map().Parts()
		m.Fields, m.Keys = b.all(m.Fields), b.all(m.Keys)
		if m.Value != nil {
			m.Value = b.node(m.Value)
		}
		parts.Map = schema.NewMap(m)
	}
	out.Make(parts)
	return out
}

func (b blind) all(nodes map[string]*schema.Node) map[string]*schema.Node {
	if nodes == nil {
		return nil
	}
	out := make(map[string]*schema.Node, len(nodes))
	for name, n := range nodes {
		out[name] = b.node(n)
	}
	return out
}

// permissions returns the permissions of a node whose old value is not known.
func (b blind) permissions(permissions []*schema.Permission) []*schema.Permission {
	return whereConditional(permissions, func(p *schema.PermissionParts) { p.Unseen = true })
}

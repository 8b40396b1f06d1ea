package schema

import (
	"slices"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// graft puts the permissions of an object's tree into that of a body.
type graft struct {
	body *Node
	// onto are the places of the body, with the nodes of the object that they become.
	onto []grafted
}

type grafted struct {
	at Pattern
	// above are the permissions on the way to node.
	above []*Permission
	node  *Node
}

func (g *graft) add(f endpoint.Field, object *Node) {
	from, err := ParsePattern(f.From)
	if err != nil {
		return
	}
	to, err := ParsePattern(f.To)
	if err != nil {
		return
	}
	if above, node, ok := reach(object, to); ok {
		g.onto = append(g.onto, grafted{from, above, node})
	}
}

// reach returns the node at a path, and the permissions above it. A condition above it is about a value that the
// body does not hold: the barrier holds always then.
func reach(n *Node, path Pattern) (above []*Permission, at *Node, ok bool) {
	for _, e := range path {
		above = append(above, always(n.permissions)...)
		switch {
		case e.any && n.list != nil:
			n = n.list.item
		case e.any && n.mapping != nil && n.mapping.value != nil:
			n = n.mapping.value
		case !e.any && n.mapping != nil:
			n = n.mapping.Child(e.name)
		default:
			return nil, nil, false
		}
	}
	// The root's verb is the body's as well.
	return slices.DeleteFunc(above, func(p *Permission) bool { return p.verb.Name() == "*" }), n, true
}

// always returns the permissions with barriers that hold whatever the values.
func always(permissions []*Permission) []*Permission {
	out := slices.Clone(permissions)
	for i, p := range out {
		if p.Conditional() {
			unconditional := *p
			unconditional.excluded = true
			out[i] = &unconditional
		}
	}
	return out
}

// root returns the body's tree with all that was added, nil if that says nothing new.
func (g *graft) root() *Node {
	root := g.body
	for _, one := range g.onto {
		root = one.into(root, one.at, nil)
	}
	if root == g.body {
		return nil
	}
	return root
}

// into returns n with the permissions at the end of the path below it, n itself if it has them already.
func (o *grafted) into(n *Node, path Pattern, above []*Permission) *Node {
	if len(path) == 0 {
		return o.onto(n, above)
	}
	if n.mapping == nil || path[0].any {
		return n
	}
	child := n.mapping.Child(path[0].name)
	// The only field is the object's: what is said of what holds it gives way to what the object says, unless it
	// is a barrier.
	gives := len(n.mapping.fields) == 1 && n.mapping.value == nil && len(above) > 0
	if !gives {
		above = slices.Concat(above, n.permissions)
	}
	next := o.into(child, path[1:], above)
	if next == child {
		return n
	}
	out := *n
	if gives {
		barriers := slices.DeleteFunc(always(n.permissions), func(p *Permission) bool { return !p.MayBar() })
		moved := *next
		moved.permissions = slices.Concat(barriers, next.permissions)
		next, out.permissions = &moved, nil
	}
	out.mapping = n.mapping.with(path[0].name, next)
	out.unbarred = !out.mayBarBelow()
	return &out
}

// onto returns the node at the place itself.
func (o *grafted) onto(n *Node, above []*Permission) *Node {
	out := joined(n, o.node, 0)
	var missing []*Permission
	for _, p := range o.above {
		if !says(above, p) && !says(out.permissions, p) {
			missing = append(missing, p)
		}
	}
	// A verb of the body alone is above what holds the object's field: it passes no barrier there. One that is a barrier itself stays
	// the last.
	var alone, rest []*Permission
	for _, p := range out.permissions {
		if !p.MayBar() && !slices.ContainsFunc(o.node.permissions, func(q *Permission) bool { return sameVerb(q, p) }) {
			beside := *p
			beside.beside = true
			alone = append(alone, &beside)
		} else {
			rest = append(rest, p)
		}
	}
	if len(alone) == 0 && len(missing) == 0 {
		return out
	}
	copied := *out
	copied.permissions = slices.Concat(alone, missing, rest)
	return &copied
}

// says reports whether permissions have all that p adds: its verb, and as a barrier if it may be one.
func says(permissions []*Permission, p *Permission) bool {
	return slices.ContainsFunc(permissions, func(q *Permission) bool { return q == p || sameVerb(q, p) && (!p.MayBar() || q.excluded) })
}

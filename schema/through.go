package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// through is an endpoint with a kind of body that it takes.
type through struct {
	group, resource, subresource string
	body                         runtimeschema.GroupVersionKind
}

// deriveBodies makes the trees of the bodies that write a part of an object of another kind: a Scale, a Binding, an
// Event of the other group. Where a field of the body becomes a field of the object, it has the verbs and barriers of
// both.
func (c *compiler) deriveBodies(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	versions := map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind{}
	for _, gvk := range inOrder(s.kinds) {
		versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], gvk)
	}
	grafts := map[through]*graft{}
	for _, gvk := range inOrder(owners) {
		resource := owners[gvk].resource(gvk)
		own, _ := endpoint.Lookup(resource.Group, resource.Resource, "")
		for _, e := range endpoint.Writers(resource.Group, resource.Resource) {
			if e.Body.Kind == "" || e.GroupKind() == gvk.GroupKind() {
				continue
			}
			for _, body := range versions[e.GroupKind()] {
				at := through{e.Group, e.Resource, e.Subresource, body}
				if err := s.failed[gvk]; err != nil {
					s.failedBodies[at] = err
					continue
				}
				if grafts[at] == nil {
					grafts[at] = &graft{body: s.kinds[body].Root}
				}
				for _, f := range becomes(&e, &own, s.kinds[body].Root, owners[gvk].replicas(gvk)) {
					grafts[at].add(f, s.kinds[gvk].Root)
				}
			}
		}
	}
	for at, g := range grafts {
		if root := g.root(); root != nil {
			k := *s.kinds[at.body]
			k.Root, k.mayBar = root, root.MayBarWithin()
			s.bodies[at] = &k
		}
	}
	// A webhook may be asked about one name when another was addressed.
	for at, k := range s.bodies {
		for _, alias := range endpoint.Aliases(at.group, at.resource, at.subresource) {
			if other := (through{alias.Group, alias.Resource, alias.Subresource, at.body}); s.bodies[other] == nil {
				s.bodies[other] = k
			}
		}
	}
	for at, err := range s.failedBodies {
		for _, alias := range endpoint.Aliases(at.group, at.resource, at.subresource) {
			s.failedBodies[through{alias.Group, alias.Resource, alias.Subresource, at.body}] = err
		}
	}
}

// becomes returns which fields of an endpoint's body are which fields of the object, as the object's own endpoint names
// them.
func becomes(e, own *endpoint.Endpoint, body *Node, replicas string) []endpoint.Field {
	var out []endpoint.Field
	if !e.Whole {
		for _, f := range e.Fields {
			if f.To == endpoint.SpecReplicas {
				f.To = replicas
			}
			out = append(out, endpoint.Field{From: f.From, To: f.Stored()})
		}
		return out
	}
	if body.mapping == nil {
		return nil
	}
	// One object under two names. Both bodies say by which names of the store they go.
	for _, name := range sortedKeys(body.mapping.fields) {
		from := "." + name
		if name == "apiVersion" || name == "kind" {
			continue
		}
		out = append(out, endpoint.Field{From: from, To: unstored(own, stored(e, from))})
	}
	return out
}

// stored returns what the store calls a field of an endpoint's body.
func stored(e *endpoint.Endpoint, path string) string {
	for _, f := range e.Fields {
		if f.From == path {
			return f.Stored()
		}
	}
	return path
}

// unstored returns what an endpoint's body calls a field of the store.
func unstored(e *endpoint.Endpoint, path string) string {
	for _, f := range e.Fields {
		if f.Stored() == path {
			return f.From
		}
	}
	return path
}

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
	if len(missing) == 0 {
		return out
	}
	copied := *out
	// A verb of the body alone is above what holds the object's field: it passes no barrier there. One that is a barrier itself stays
	// the last.
	var alone, rest []*Permission
	for _, p := range out.permissions {
		if !p.MayBar() && !says(o.node.permissions, p) {
			alone = append(alone, p)
		} else {
			rest = append(rest, p)
		}
	}
	copied.permissions = slices.Concat(alone, missing, rest)
	return &copied
}

// says reports whether permissions have all that p adds: its verb, and as a barrier if it may be one.
func says(permissions []*Permission, p *Permission) bool {
	return slices.ContainsFunc(permissions, func(q *Permission) bool { return q == p || sameVerb(q, p) && (!p.MayBar() || q.excluded) })
}

// deepest bounds the depth to which trees are merged: what is recursive is none of what bodies share.
const deepest = 32

// joined returns n, which says how values compare, with the permissions of the other tree beside its own. It is n itself
// if it has them all.
func joined(n, other *Node, depth int) *Node {
	if n == other || depth > deepest {
		return n
	}
	out := *n
	changed := false
	for _, p := range other.permissions {
		if !says(out.permissions, p) {
			// What the body says of the same verb comes second, and counts as a barrier all the same.
			out.permissions, changed = append(slices.Clone(out.permissions), p), true
		}
	}
	if out.emits == "" && other.emits != "" {
		out.emits, changed = other.emits, true
	}
	if n.list != nil && other.list != nil && n.list.item != nil && other.list.item != nil {
		if item := joined(n.list.item, other.list.item, depth+1); item != n.list.item {
			list := *n.list
			list.item = item
			out.list, changed = &list, true
		}
	}
	if n.mapping != nil && other.mapping != nil {
		if m := n.mapping.joined(other.mapping, depth); m != n.mapping {
			out.mapping, changed = m, true
		}
	}
	if !changed {
		return n
	}
	out.unbarred = !out.mayBarBelow()
	return &out
}

func (m *Map) joined(other *Map, depth int) *Map {
	out := *m
	changed := false
	for _, name := range sortedKeys(m.fields) {
		if theirs := other.fields[name]; theirs != nil {
			if n := joined(m.fields[name], theirs, depth+1); n != m.fields[name] {
				out.fields, changed = out.with(name, n).fields, true
			}
		}
	}
	if m.value != nil && other.value != nil {
		if n := joined(m.value, other.value, depth+1); n != m.value {
			out.value, changed = n, true
		}
		// A key that the other singles out is singled out here.
		for _, name := range sortedKeys(other.keys) {
			mine := m.keys[name]
			if mine == nil {
				mine = m.value
			}
			if n := joined(mine, other.keys[name], depth+1); n != m.keys[name] {
				keys := make(map[string]*Node, len(out.keys)+1)
				for k, v := range out.keys {
					keys[k] = v
				}
				keys[name] = n
				out.keys, changed = keys, true
			}
		}
		for _, name := range sortedKeys(m.keys) {
			if other.keys[name] != nil {
				continue
			}
			if n := joined(m.keys[name], other.value, depth+1); n != m.keys[name] {
				keys := make(map[string]*Node, len(out.keys))
				for k, v := range out.keys {
					keys[k] = v
				}
				keys[name] = n
				out.keys, changed = keys, true
			}
		}
	}
	if !changed {
		return m
	}
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

func sameVerb(a, b *Permission) bool { return a.verb == b.verb && a.parameter == b.parameter }

// BarsAt reports whether a barrier of the kind's schema guards a field, something in it, or something that it is a part
// of. UncoveredPermissionSets are not counted. A path that the kind lacks is unknown fields of what it is in.
func (k *Kind) BarsAt(path string) bool {
	p, err := ParsePattern(path)
	if err != nil {
		return true
	}
	n := k.Root
	for _, e := range p {
		if slices.ContainsFunc(n.permissions, (*Permission).MayBar) {
			return true
		}
		switch {
		case e.any && n.list != nil:
			n = n.list.item
		case e.any || n.mapping == nil:
			return n.MayBarWithin()
		default:
			n = n.mapping.Child(e.name)
		}
	}
	return n.MayBarWithin() || slices.ContainsFunc(n.permissions, (*Permission).MayBar)
}

// WalkAt visits the nodes on the way to a field, and those at and below it, each once. A path that the kind lacks ends at
// what it is in.
func (k *Kind) WalkAt(path string, visit func(*Node)) {
	p, err := ParsePattern(path)
	if err != nil {
		p = nil
	}
	n := k.Root
	for _, e := range p {
		next := (*Node)(nil)
		switch {
		case e.any && n.list != nil:
			next = n.list.item
		case !e.any && n.mapping != nil:
			next = n.mapping.Child(e.name)
		}
		if next == nil {
			break
		}
		visit(n)
		n = next
	}
	walk(n, nil, map[*Node]bool{}, func(_ Pattern, n *Node) { visit(n) })
}

// Has reports whether the kind declares a field at a path.
func (k *Kind) Has(path Pattern) bool {
	n := k.Root
	for _, e := range path {
		switch {
		case e.any && n.list != nil:
			n = n.list.item
		case e.any && n.mapping != nil && n.mapping.value != nil:
			n = n.mapping.value
		case !e.any && n.mapping != nil && n.mapping.fields[e.name] != nil:
			n = n.mapping.fields[e.name]
		default:
			return false
		}
	}
	return true
}

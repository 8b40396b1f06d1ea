package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/previous/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// through is an endpoint with the kind of one of its bodies.
type through struct {
	group, resource, subresource string
	body                         runtimeschema.GroupVersionKind
	// version is the version of the resource, for a Scale, because each version has its own path of replicas. It is "" for all versions
	// together.
	version string
}

// deriveBodies makes the trees of bodies that write a part of an object of another kind: a Scale, a Binding, an Event of the other group.
// If a field of the body becomes a field of the object, it has the verbs and barriers of both.
func (c *compiler) deriveBodies(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	versions := map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind{}
	for _, gvk := range inOrder(s.kinds) {
		versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], gvk)
	}
	for gvk, k := range s.kinds {
		if IsScale(gvk.GroupKind()) {
			k.Root = k.Root.at([]string{"spec", "replicas"}, func(n Node) *Node {
				n.permissions = withZero(n.permissions, absentMayBeZero)
				return &n
			})
		}
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
				at := through{e.Group, e.Resource, e.Subresource, body, ""}
				if err := s.failed[gvk]; err != nil {
					s.failedBodies[at] = err
					continue
				}
				places := []through{at}
				if at.subresource == scaleSubresource {
					at.version = gvk.Version
					places = append(places, at)
				}
				for _, at := range places {
					if grafts[at] == nil {
						grafts[at] = &graft{body: s.kinds[body].Root, unseen: e.ChangesUnseen(), zero: zeroIn(at)}
					}
					for _, f := range becomes(&e, &own, s.kinds[body].Root, owners[gvk].replicas(gvk)) {
						grafts[at].add(f, s.kinds[gvk].Root)
					}
				}
			}
		}
	}
	for at, g := range grafts {
		k := *s.kinds[at.body]
		root := g.root()
		if root != nil {
			k.Root, k.mayBar = root, root.MayBarWithin()
		}
		if root != nil || at.version != "" {
			s.bodies[at] = &k
		}
	}
	// The API server may ask a webhook about one name although the client addressed another.
	for at, k := range s.bodies {
		for _, alias := range endpoint.Aliases(at.group, at.resource, at.subresource) {
			if other := (through{alias.Group, alias.Resource, alias.Subresource, at.body, at.version}); s.bodies[other] == nil {
				s.bodies[other] = k
			}
		}
	}
	for at, err := range s.failedBodies {
		for _, alias := range endpoint.Aliases(at.group, at.resource, at.subresource) {
			s.failedBodies[through{alias.Group, alias.Resource, alias.Subresource, at.body, at.version}] = err
		}
	}
}

// becomes returns which fields of an endpoint's body become which fields of the object, in the names of the object's own endpoint.
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
	// The object has two names. The fields of both bodies are matched by their names in storage.
	for _, name := range sortedKeys(body.mapping.fields) {
		from := "." + name
		if name == "apiVersion" || name == "kind" {
			continue
		}
		out = append(out, endpoint.Field{From: from, To: unstored(own, stored(e, from))})
	}
	return out
}

// stored returns the name in storage of a field of an endpoint's body.
func stored(e *endpoint.Endpoint, path string) string {
	for _, f := range e.Fields {
		if f.From == path {
			return f.Stored()
		}
	}
	return path
}

// unstored returns the name in an endpoint's body of a field in storage.
func unstored(e *endpoint.Endpoint, path string) string {
	for _, f := range e.Fields {
		if f.Stored() == path {
			return f.From
		}
	}
	return path
}

// BarsAt reports whether a barrier of the kind's schema guards a field, a part of it, or a value that contains it.
// UncoveredPermissionSets are not counted. A path that the kind does not have counts as unknown fields of the value that would contain
// it. It is true for an invalid path.
func (k *Kind) BarsAt(path string) bool {
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		return true
	}
	n := k.Root
	for _, e := range p {
		if slices.ContainsFunc(n.permissions, (*Permission).MayBar) {
			return true
		}
		switch {
		case e.Any && n.list != nil:
			n = n.list.item
		case e.Any || n.mapping == nil:
			return n.MayBarWithin()
		default:
			n = n.mapping.Child(e.Name)
		}
	}
	return n.MayBarWithin() || slices.ContainsFunc(n.permissions, (*Permission).MayBar)
}

// WalkAt visits the nodes on the way to a field, and those at and below it, each once. If the kind does not have the path, the walk ends
// at the last known node.
func (k *Kind) WalkAt(path string, visit func(*Node)) {
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		p = nil
	}
	n := k.Root
	for _, e := range p {
		next := (*Node)(nil)
		switch {
		case e.Any && n.list != nil:
			next = n.list.item
		case !e.Any && n.mapping != nil:
			next = n.mapping.Child(e.Name)
		}
		if next == nil {
			break
		}
		visit(n)
		n = next
	}
	each(n, map[*Node]bool{}, visit)
}

// Has reports whether the kind declares a field at a path.
func (k *Kind) Has(path fieldpath.Pattern) bool {
	n := k.Root
	for _, e := range path {
		switch {
		case e.Any && n.list != nil:
			n = n.list.item
		case e.Any && n.mapping != nil && n.mapping.value != nil:
			n = n.mapping.value
		case !e.Any && n.mapping != nil && n.mapping.fields[e.Name] != nil:
			n = n.mapping.fields[e.Name]
		default:
			return false
		}
	}
	return true
}

package schemacheck

import (
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// index has the resources of a compile, with the verbs that guard their fields.
type index struct {
	schema *schema.Schema
	// kinds are the kinds of a resource, in all versions.
	kinds map[runtimeschema.GroupResource][]*schema.Kind
	// failed are the resources with a version that did not compile, so that their verbs are not known.
	failed map[runtimeschema.GroupResource]bool
	groups map[string]bool
	bodies map[runtimeschema.GroupKind][]*schema.Kind
	// guards are the permissions in a tree, or in the part of it that a subresource writes, by the name of the verb.
	guards map[written]map[string]*guards
}

// written is a tree, or the part of it that a subresource writes.
type written struct {
	root *schema.Node
	by   string
}

// guards are permissions whose verbs have one name.
type guards struct {
	// permissions are those on fields that are charged.
	permissions []*schema.Permission
	// free means that a field with such a permission is never charged because of its role.
	free bool
}

func newIndex(documents *compile.Documents, compiled *schema.Schema) *index {
	x := &index{
		schema: compiled, kinds: map[runtimeschema.GroupResource][]*schema.Kind{}, failed: map[runtimeschema.GroupResource]bool{}, groups: map[string]bool{},
		bodies: map[runtimeschema.GroupKind][]*schema.Kind{}, guards: map[written]map[string]*guards{},
	}
	for gvk, resource := range documents.Resources() {
		x.groups[gvk.Group] = true
		k, err := compiled.Kind(gvk)
		if err != nil {
			x.failed[resource] = true
			continue
		}
		x.kinds[resource] = append(x.kinds[resource], k)
		x.bodies[gvk.GroupKind()] = append(x.bodies[gvk.GroupKind()], k)
	}
	return x
}

// builtIn reports whether the group is built in, so that all its resources are known.
func builtIn(group string) bool {
	return slices.ContainsFunc(endpoint.All(), func(e endpoint.Endpoint) bool { return e.Group == group })
}

// target is a resource that a set names, with the kinds of the bodies that write it. If subresource is "", the target includes all
// subresources.
type target struct {
	runtimeschema.GroupResource
	subresource string
	kinds       []*schema.Kind
	failed      bool
	// writes is the subresource if it takes the object's own kind and writes only a part of the object; nil means the whole object.
	writes *endpoint.Endpoint
}

// has reports whether the target writes the field at a path.
func (t *target) has(path fieldpath.Pattern) bool {
	return t.writes == nil || t.writes.Reaches(path.String())
}

func (t *target) String() string {
	name := t.Resource
	if t.subresource != "" {
		name += "/" + t.subresource
	}
	if t.Group != "" {
		name += "." + t.Group
	}
	return name
}

// target returns a resource with the kinds of its objects and of its subresources' bodies. It reports false if the resource or
// subresource is not known.
func (x *index) target(resource runtimeschema.GroupResource, subresource string) (*target, bool) {
	own, failed := x.kinds[resource], x.failed[resource]
	if len(own) == 0 && !failed {
		return nil, false
	}
	t := &target{GroupResource: resource, subresource: subresource, kinds: slices.Clone(own), failed: failed}
	if subresource != "" {
		e, ok := endpoint.Lookup(resource.Group, resource.Resource, subresource)
		if !ok {
			return nil, false
		}
		x.narrow(t, &e)
		return t, true
	}
	for _, e := range endpoint.All() {
		if e.GroupResource() == resource && e.Subresource != "" {
			t.add(x.bodies[e.GroupKind()])
		}
	}
	return t, true
}

// narrow limits a target to one subresource.
func (x *index) narrow(t *target, e *endpoint.Endpoint) {
	if len(t.kinds) == 0 {
		return // No kind of the target compiled.
	}
	if bodies := x.bodies[e.GroupKind()]; len(bodies) > 0 && !slices.Contains(bodies, t.kinds[0]) {
		t.kinds = nil
		for _, k := range bodies {
			if derived, err := x.schema.KindFor(k.GroupVersionKind, schema.ResourceRef{Group: t.Group, Resource: t.Resource, Subresource: t.subresource}); err == nil {
				k = derived
			}
			t.kinds = append(t.kinds, k)
		}
		return
	}
	if !e.Whole {
		t.writes = e
	}
}

func (t *target) add(kinds []*schema.Kind) {
	for _, k := range kinds {
		if !slices.Contains(t.kinds, k) {
			t.kinds = append(t.kinds, k)
		}
	}
}

// guardsOf returns, by verb name, the permissions in the part of a kind that the target writes.
func (x *index) guardsOf(t *target, k *schema.Kind) map[string]*guards {
	at := written{root: k.Root}
	if t.writes != nil {
		at.by = t.writes.Group + "/" + t.writes.Name()
	}
	if known := x.guards[at]; known != nil {
		return known
	}
	out := map[string]*guards{}
	visit := func(path fieldpath.Pattern, n *schema.Node) {
		if !t.has(path) {
			return
		}
		for _, p := range n.Permissions() {
			name := p.Base().Name()
			if out[name] == nil {
				out[name] = &guards{}
			}
			switch g := out[name]; {
			case n.Role() != schema.RoleNone:
				g.free = true
			case !slices.Contains(g.permissions, p):
				g.permissions = append(g.permissions, p)
			}
		}
	}
	if t.writes == nil {
		k.Walk(visit)
	} else {
		// A node may occur at several places, and the subresource may write only one of them.
		k.Guarded(schema.MaxGuardedPlaces, visit)
	}
	x.guards[at] = out
	return out
}

// fit says how well a verb fits resources. Higher values fit better.
type fit int

const (
	noField fit = iota
	// freeField: only fields that are never charged have the verb.
	freeField
	noParameter
	noSuchParameter
	fits
)

// fit returns the best fit of a verb to the kinds of a target.
func (x *index) fit(t *target, v verbs.Verb) fit {
	best := noField
	for _, k := range t.kinds {
		g := x.guardsOf(t, k)[v.Name()]
		if g == nil {
			continue
		}
		if g.free {
			best = max(best, freeField)
		}
		for _, p := range g.permissions {
			switch {
			case p.MayBe(v):
				return fits
			case p.ParameterName() == "":
				best = max(best, noParameter)
			default:
				best = max(best, noSuchParameter)
			}
		}
	}
	return best
}

// names returns the names of the verbs that guard a field of the targets, sorted.
func (x *index) names(targets []*target) []string {
	seen := map[string]bool{}
	for _, t := range targets {
		for _, k := range t.kinds {
			for name, g := range x.guardsOf(t, k) {
				if len(g.permissions) > 0 {
					seen[name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// everything returns all resources that have the subresource, or all resources for "".
func (x *index) everything(in func(runtimeschema.GroupResource) bool, subresource string) []*target {
	var out []*target
	all := map[runtimeschema.GroupResource]bool{}
	for r := range x.kinds {
		all[r] = true
	}
	for r := range x.failed {
		all[r] = true
	}
	for r := range all {
		if !in(r) {
			continue
		}
		if t, ok := x.target(r, subresource); ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *target) int { return strings.Compare(a.String(), b.String()) })
	return out
}

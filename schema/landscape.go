package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// landscape is the resources of a compile with the verbs that their objects bear.
type landscape struct {
	// kinds are those of a resource, in all versions.
	kinds map[runtimeschema.GroupResource][]*Kind
	// failed are resources of which a version did not compile: nothing can be said of their verbs.
	failed map[runtimeschema.GroupResource]bool
	groups map[string]bool
	// scaled are the resources whose definitions have the subresource scale, in order.
	scaled []runtimeschema.GroupResource
	bodies map[runtimeschema.GroupKind][]*Kind
	// through are the trees of bodies that write a part of an object of another kind.
	through map[through]*Kind
	borne   map[bearer]map[string]*borne
}

// bearer is a tree, or the part of it that a subresource writes.
type bearer struct {
	root *Node
	at   string
}

// borne is what bears the verbs of one name in a tree.
type borne struct {
	// permissions are of fields that are charged.
	permissions []*Permission
	// free says that a field bears one which is never charged because of its role.
	free bool
}

func newLandscape(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) *landscape {
	l := &landscape{
		kinds: map[runtimeschema.GroupResource][]*Kind{}, failed: map[runtimeschema.GroupResource]bool{}, groups: map[string]bool{},
		bodies: map[runtimeschema.GroupKind][]*Kind{}, through: s.bodies, borne: map[bearer]map[string]*borne{},
	}
	for _, gvk := range inOrder(owners) {
		resource := owners[gvk].resource(gvk)
		l.groups[gvk.Group] = true
		if _, ok := owners[gvk].Replicas[gvk]; ok && !slices.Contains(l.scaled, resource) {
			l.scaled = append(l.scaled, resource)
		}
		k := s.kinds[gvk]
		if k == nil {
			l.failed[resource] = true
			continue
		}
		l.kinds[resource] = append(l.kinds[resource], k)
		l.bodies[gvk.GroupKind()] = append(l.bodies[gvk.GroupKind()], k)
	}
	return l
}

// builtIn reports whether all resources of the group are known: nobody adds any to it.
func builtIn(group string) bool {
	return slices.ContainsFunc(endpoint.All(), func(e endpoint.Endpoint) bool { return e.Group == group })
}

// target is a resource that a set names, with the kinds of the bodies that are written through it. subresource
// is "" for the resource with all its subresources.
type target struct {
	runtimeschema.GroupResource
	subresource string
	kinds       []*Kind
	failed      bool
	// writes is the subresource that takes the object's own kind, and writes a part of it; nil for all of it.
	writes *endpoint.Endpoint
}

// has reports whether a field of a body counts.
func (t *target) has(path Pattern) bool { return t.writes == nil || t.writes.Reaches(path.String()) }

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

// target returns a resource with the kinds of its own objects and of its subresources' bodies.
func (l *landscape) target(resource runtimeschema.GroupResource, subresource string) (*target, bool) {
	own, failed := l.kinds[resource], l.failed[resource]
	if len(own) == 0 && !failed {
		return nil, false
	}
	t := &target{GroupResource: resource, subresource: subresource, kinds: slices.Clone(own), failed: failed}
	if subresource != "" {
		e, ok := endpoint.Lookup(resource.Group, resource.Resource, subresource)
		if !ok {
			return nil, false
		}
		l.narrow(t, &e)
		return t, true
	}
	for _, e := range endpoint.All() {
		if e.GroupResource() == resource && e.Subresource != "" {
			t.add(l.bodies[e.GroupKind()])
		}
	}
	return t, true
}

// narrow makes a target that of a subresource alone.
func (l *landscape) narrow(t *target, e *endpoint.Endpoint) {
	if len(t.kinds) == 0 {
		return // It failed to compile.
	}
	if bodies := l.bodies[e.GroupKind()]; len(bodies) > 0 && !slices.Contains(bodies, t.kinds[0]) {
		t.kinds = nil
		for _, k := range bodies {
			if derived := l.through[through{t.Group, t.Resource, t.subresource, k.GroupVersionKind, ""}]; derived != nil {
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

func (t *target) add(kinds []*Kind) {
	for _, k := range kinds {
		if !slices.Contains(t.kinds, k) {
			t.kinds = append(t.kinds, k)
		}
	}
}

// bearers returns what bears verbs of each name in what is written of a kind.
func (l *landscape) bearers(t *target, k *Kind) map[string]*borne {
	at := bearer{root: k.Root}
	if t.writes != nil {
		at.at = t.writes.Group + "/" + t.writes.Name()
	}
	if known := l.borne[at]; known != nil {
		return known
	}
	out := map[string]*borne{}
	visit := func(path Pattern, n *Node) {
		if !t.has(path) {
			return
		}
		for _, p := range n.permissions {
			b := out[p.verb.Name()]
			if b == nil {
				b = &borne{}
				out[p.verb.Name()] = b
			}
			switch {
			case n.role != RoleNone:
				b.free = true
			case !slices.Contains(b.permissions, p):
				b.permissions = append(b.permissions, p)
			}
		}
	}
	if t.writes == nil {
		walk(k.Root, nil, map[*Node]bool{}, visit)
	} else {
		// A node may be at several places, of which the subresource writes one.
		k.Guarded(maxGuardedPlaces, visit)
	}
	l.borne[at] = out
	return out
}

// mayBe reports whether the permission's verb may be v: with the parameter of v, if v has one.
func (p *Permission) mayBe(v verbs.Verb) bool {
	if p.verb != v.WithoutParameter() {
		return false
	}
	value, parameterized := v.Parameter()
	return !parameterized || p.parameter != "" && p.mayYield(value)
}

// mayYield reports whether a key or value may become this parameter.
func (p *Permission) mayYield(value string) bool {
	return p.expression != nil || p.treatment != v1alpha1.TreatmentSlashDelimitedPrefix || !strings.Contains(value, "/")
}

// fit is how a verb fits resources.
type fit int

const (
	noField fit = iota
	// freeField: fields that are never charged.
	freeField
	noParameter
	noSuchParameter
	fits
)

// fit returns the best fit of a verb to the kinds of a target.
func (l *landscape) fit(t *target, v verbs.Verb) fit {
	best := noField
	for _, k := range t.kinds {
		b := l.bearers(t, k)[v.Name()]
		if b == nil {
			continue
		}
		if b.free {
			best = max(best, freeField)
		}
		for _, p := range b.permissions {
			switch {
			case p.mayBe(v):
				return fits
			case p.parameter == "":
				best = max(best, noParameter)
			default:
				best = max(best, noSuchParameter)
			}
		}
	}
	return best
}

// names returns the names of the verbs that guard a field of the targets, sorted.
func (l *landscape) names(targets []*target) []string {
	seen := map[string]bool{}
	for _, t := range targets {
		for _, k := range t.kinds {
			for name, b := range l.bearers(t, k) {
				if len(b.permissions) > 0 {
					seen[name] = true
				}
			}
		}
	}
	return sortedKeys(seen)
}

// everything returns all resources that have the subresource, or all for "".
func (l *landscape) everything(in func(runtimeschema.GroupResource) bool, subresource string) []*target {
	var out []*target
	all := map[runtimeschema.GroupResource]bool{}
	for r := range l.kinds {
		all[r] = true
	}
	for r := range l.failed {
		all[r] = true
	}
	for r := range all {
		if t, ok := l.target(r, subresource); in(r) && ok {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *target) int { return strings.Compare(a.String(), b.String()) })
	return out
}

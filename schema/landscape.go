package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// landscape holds the resources of a compile with the verbs that guard their fields.
type landscape struct {
	// kinds are the kinds of a resource, in all versions.
	kinds map[runtimeschema.GroupResource][]*Kind
	// failed are the resources with a version that did not compile, so that their verbs are not known.
	failed map[runtimeschema.GroupResource]bool
	groups map[string]bool
	// statusInside are the resources with a version that lacks the subresource status.
	statusInside map[runtimeschema.GroupResource]bool
	bodies       map[runtimeschema.GroupKind][]*Kind
	// through are the trees of bodies that write a part of an object of another kind.
	through map[through]*Kind
	borne   map[bearer]map[string]*borne
	// containing are the resources that contain each fragment.
	containing map[string][]v1alpha1.ResourceRule
}

// bearer is a tree, or the part of it that a subresource writes.
type bearer struct {
	root *Node
	at   string
}

// borne holds the permissions in a tree whose verbs have one name.
type borne struct {
	// permissions are those on fields that are charged.
	permissions []*Permission
	// free means that a field with such a permission is never charged because of its role.
	free bool
}

func newLandscape(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) *landscape {
	l := &landscape{
		kinds: map[runtimeschema.GroupResource][]*Kind{}, failed: map[runtimeschema.GroupResource]bool{}, groups: map[string]bool{},
		statusInside: map[runtimeschema.GroupResource]bool{}, bodies: map[runtimeschema.GroupKind][]*Kind{}, through: s.bodies, borne: map[bearer]map[string]*borne{},
		containing: map[string][]v1alpha1.ResourceRule{},
	}
	for _, gvk := range inOrder(owners) {
		resource := owners[gvk].resource(gvk)
		l.groups[gvk.Group] = true
		for _, fragment := range v1alpha1.Fragments() {
			if _, contains := slices.BinarySearchFunc(s.containing[fragment], gvk.GroupKind(), compareKinds); contains && len(l.kinds[resource]) == 0 && !l.failed[resource] {
				l.containing[fragment] = append(l.containing[fragment], v1alpha1.ResourceRule{APIGroups: []string{gvk.Group}, Resources: []string{resource.Resource}})
			}
		}
		if owners[gvk].StatusInside[gvk] {
			l.statusInside[resource] = true
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

// SetResources returns the resources that a set is about: those that it names, or those that contain its fragment. None means every resource. The
// Schema must have been compiled with the set.
func (s *Schema) SetResources(spec *v1alpha1.UncoveredPermissionSetSpec) []v1alpha1.ResourceRule {
	if spec.Fragment == "" || s.landscape == nil {
		return spec.Resources
	}
	return append(slices.Clip(spec.Resources), s.landscape.containing[spec.Fragment]...)
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
	kinds       []*Kind
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

// narrow limits a target to one subresource.
func (l *landscape) narrow(t *target, e *endpoint.Endpoint) {
	if len(t.kinds) == 0 {
		return // No kind of the target compiled.
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

// bearers returns, by verb name, the permissions in the part of a kind that the target writes.
func (l *landscape) bearers(t *target, k *Kind) map[string]*borne {
	at := bearer{root: k.Root}
	if t.writes != nil {
		at.at = t.writes.Group + "/" + t.writes.Name()
	}
	if known := l.borne[at]; known != nil {
		return known
	}
	out := map[string]*borne{}
	visit := func(path fieldpath.Pattern, n *Node) {
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
		// A node may occur at several places, and the subresource may write only one of them.
		k.Guarded(maxGuardedPlaces, visit)
	}
	l.borne[at] = out
	return out
}

// MayBe reports whether the permission can have the verb v. If v has a parameter, the permission must be able to have that parameter.
func (p *Permission) MayBe(v verbs.Verb) bool {
	if p.verb != v.WithoutParameter() {
		return false
	}
	value, parameterized := v.Parameter()
	return !parameterized || p.parameter != "" && p.mayYield(value)
}

// mayYield reports whether a key or value can give this parameter.
func (p *Permission) mayYield(value string) bool {
	return p.expression != nil || p.treatment != v1alpha1.TreatmentSlashDelimitedPrefix || !strings.Contains(value, "/")
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
			case p.MayBe(v):
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

// everything returns all resources that have the subresource, or all resources for "".
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

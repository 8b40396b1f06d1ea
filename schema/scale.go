package schema

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// scaleSubresource writes one field of its parent through an object of another kind: a barrier on
// the parent's replicas must hold there too.
const scaleSubresource = "scale"

// scaleKind is the kind of that object.
var scaleKind = runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// replicasPath is where a kind has its replicas unless its topology says otherwise.
const replicasPath = ".spec.replicas"

// KindFor returns the tree for an object of a kind that is written through a resource. It is Kind,
// but for the scale subresource of a resource whose replicas have verbs other than every Scale's:
// there the Scale's replicas have both, and the parent's barriers hold, those of an
// UncoveredPermissionSet too. Errors are Kind's, the parent's included.
func (s *Schema) KindFor(gvk runtimeschema.GroupVersionKind, ref ResourceRef) (*Kind, error) {
	if ref.Subresource == scaleSubresource {
		parent := runtimeschema.GroupResource{Group: ref.Group, Resource: ref.Resource}
		if err := s.failedScales[parent]; err != nil {
			return nil, err
		}
		k := s.scales[parent]
		if k == nil {
			k = s.kinds[scaleKind]
		}
		if k != nil && gvk == scaleKind {
			if lossy := s.lossyScales[parent.WithVersion(ref.Version)]; lossy != nil {
				return lossy, nil
			}
			return k, nil
		}
	}
	return s.Kind(gvk)
}

// deriveScales makes the Scales of every resource whose replicas have verbs of their own, and of those
// whose kind is lossy.
func (c *compiler) deriveScales(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	base := s.kinds[scaleKind]
	// In order, so that of several versions the same one counts every time.
	for _, gvk := range inOrder(owners) {
		topology := owners[gvk]
		resource := topology.resource(gvk)
		if err := s.failed[gvk]; err != nil {
			s.failedScales[resource] = err
			continue
		}
		permissions := barred(s.kinds[gvk].Root, topology.replicas(gvk))
		if len(permissions) == 0 || base == nil || !slices.ContainsFunc(permissions, (*Permission).MayBar) && slices.EqualFunc(permissions, barred(base.Root, replicasPath), sameVerb) {
			continue
		}
		if before := s.scales[resource]; before == nil || !before.mayBar {
			s.scales[resource] = scaleWith(base, permissions)
		}
	}
	for gvk, k := range s.kinds {
		resource := owners[gvk].resource(gvk)
		scale := s.scales[resource]
		if scale == nil {
			scale = base
		}
		if k.hidden != nil && scale != nil {
			whole := *scale
			whole.hidden = k.hidden
			s.lossyScales[resource.WithVersion(gvk.Version)] = &whole
		}
	}
}

// resource is the kind's resource, as the source names it or as Kubernetes pluralizes it.
func (t *Topology) resource(gvk runtimeschema.GroupVersionKind) runtimeschema.GroupResource {
	if plural, ok := t.Plurals[gvk]; ok {
		return runtimeschema.GroupResource{Group: gvk.Group, Resource: plural}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource()
}

func (t *Topology) replicas(gvk runtimeschema.GroupVersionKind) string {
	if path, ok := t.Replicas[gvk]; ok {
		return path
	}
	return replicasPath
}

// barred returns the permissions on the way to a path.
func barred(root *Node, path string) []*Permission {
	var out []*Permission
	n := root
	names := strings.Split(strings.TrimPrefix(path, "."), ".")
	for i, name := range names {
		if n.mapping == nil {
			return nil
		}
		n = n.mapping.Child(name)
		for _, p := range n.permissions {
			if p.Conditional() && i < len(names)-1 {
				// The condition is about a value that a Scale does not hold.
				always := *p
				always.excluded = true
				p = &always
			}
			out = append(out, p)
		}
	}
	return out
}

// scaleWith returns a Scale whose replicas have the permissions. What the Scale itself says of its spec gives
// way to what the parent says of its own, unless it is a barrier.
func scaleWith(base *Kind, permissions []*Permission) *Kind {
	root := *base.Root
	spec := *root.mapping.Child("spec")
	replicas := *spec.mapping.Child("replicas")
	above := slices.DeleteFunc(barred(base.Root, replicasPath)[:len(spec.permissions)], func(p *Permission) bool { return !p.MayBar() })
	replicas.permissions = slices.Concat(above, replicas.permissions, permissions)
	spec.permissions = nil
	spec.mapping = spec.mapping.with("replicas", &replicas)
	spec.unbarred = !spec.mayBarBelow()
	root.mapping = root.mapping.with("spec", &spec)
	root.unbarred = !root.mayBarBelow()
	return &Kind{GroupVersionKind: base.GroupVersionKind, Root: &root, mayBar: root.MayBarWithin()}
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

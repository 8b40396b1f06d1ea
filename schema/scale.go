package schema

import (
	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// scaleSubresource writes the replicas of its parent.
const scaleSubresource = "scale"

// scaleKind is the kind of that object.
var scaleKind = runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// replicasPath is where a kind has its replicas unless its topology says otherwise.
const replicasPath = ".spec.replicas"

// KindFor returns the tree for an object of a kind that is written through a resource. It is Kind, but where the body
// is of another kind than the object that it writes: there the fields of the body have the verbs of the object's fields
// that they become, and the object's barriers hold, those of an UncoveredPermissionSet too. Errors are Kind's, the
// object's included.
func (s *Schema) KindFor(gvk runtimeschema.GroupVersionKind, ref ResourceRef) (*Kind, error) {
	at := through{ref.Group, ref.Resource, ref.Subresource, gvk, ""}
	if err := s.failedBodies[at]; err != nil {
		return nil, err
	}
	if ref.Subresource == scaleSubresource && gvk == scaleKind {
		if concealing := s.concealing[runtimeschema.GroupVersionResource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource}]; concealing != nil {
			return concealing, nil
		}
	}
	for _, at.version = range []string{ref.Version, ""} {
		if k := s.bodies[at]; k != nil {
			return k, nil
		}
	}
	return s.Kind(gvk)
}

// zeroIn returns what absent replicas mean: built-in kinds always have some.
func zeroIn(at through) zero {
	switch {
	case !IsScale(at.body.GroupKind()):
		return nothingIsZero
	case endpoint.BuiltIn(at.group, at.resource):
		return absentIsZero
	}
	return absentMayBeZero
}

// IsScale reports whether a body is a Scale, which shows the replicas of another object.
func IsScale(body runtimeschema.GroupKind) bool { return body == scaleKind.GroupKind() }

// IsScale reports whether objects of the kind are written through the scale subresource of others.
func (k *Kind) IsScale() bool { return IsScale(k.GroupKind()) }

// deriveScales makes the Scales of resources whose kind hides something.
func (c *compiler) deriveScales(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	for gvk, k := range s.kinds {
		resource := owners[gvk].resource(gvk)
		scale := s.bodies[through{resource.Group, resource.Resource, scaleSubresource, scaleKind, gvk.Version}]
		if scale == nil {
			scale = s.kinds[scaleKind]
		}
		if k.hidden != nil && !k.hidden.replicas && scale != nil {
			whole, concealed := *scale, *k.hidden
			concealed.shown = nil
			whole.hidden = &concealed
			s.concealing[resource.WithVersion(gvk.Version)] = &whole
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

package schema

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// scaleSubresource writes the replicas of its parent.
const scaleSubresource = "scale"

// scaleKind is the kind of the body of that subresource.
var scaleKind = runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// replicasPath is the path of a kind's replicas, unless its topology has another one.
const replicasPath = ".spec.replicas"

// KindFor returns the tree for a body of a kind that is written through a resource. It returns the result of Kind, unless the body is of
// another kind than the object that it writes. Then the fields of the body have the verbs of the object's fields that they become, and
// the object's barriers hold, including those of UncoveredPermissionSets. The errors are those of Kind for the body and the object.
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

// zeroIn returns the meaning of absent replicas. Objects of built-in kinds always have replicas.
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

// HidesReplicas reports whether it is not known which field the scale subresource of a resource writes. Then every write of a Scale must pass
// every barrier of the object, because any field may be that one.
func (s *Schema) HidesReplicas(resource runtimeschema.GroupResource) bool {
	return s.replicasUnknown[resource]
}

const unknownReplicas = "the OpenAPI document of the server does not say which field the subresource scale writes: write that field of the object instead, or give it the verb \"scale\" there"

// hideReplicas makes the Scales of resources for which it is not known which field they write.
func (c *compiler) hideReplicas(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	for gvk, k := range s.kinds {
		if !owners[gvk].ReplicasUnknown[gvk] {
			continue
		}
		resource := owners[gvk].resource(gvk)
		s.replicasUnknown[resource] = true
		if scale := s.kinds[scaleKind]; scale != nil && !k.Lossy() {
			whole := *scale
			whole.hidden = &hidden{instead: unknownReplicas, verbs: map[string]bool{}}
			whole.hidden.add(k)
			if k.hidden != nil {
				for _, barrier := range k.hidden.barriers {
					whole.hidden.bar(barrier)
				}
				maps.Copy(whole.hidden.verbs, k.hidden.verbs)
			}
			s.concealing[resource.WithVersion(gvk.Version)] = &whole
		}
	}
}

// deriveScales makes the Scales of resources whose kind has hidden fields.
func (c *compiler) deriveScales(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	for gvk, k := range s.kinds {
		resource := owners[gvk].resource(gvk)
		scale := s.bodies[through{resource.Group, resource.Resource, scaleSubresource, scaleKind, gvk.Version}]
		if scale == nil {
			scale = s.kinds[scaleKind]
		}
		if k.hidden != nil && scale != nil {
			whole := *scale
			whole.hidden = k.hidden
			s.concealing[resource.WithVersion(gvk.Version)] = &whole
		}
	}
}

// resource returns the kind's resource, with the plural from the source or the one that Kubernetes derives.
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

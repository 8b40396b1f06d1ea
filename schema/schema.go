package schema

import (
	"errors"
	"fmt"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// ErrUnknownKind is the error of Kind for a kind that no source has. Nothing is known about such a kind, in particular not its barriers.
var ErrUnknownKind = errors.New("kind is not known")

// Error is a fault in a document. Source names the document, Pointer is the JSON pointer of the fault in it, and Message ends with the
// cure.
type Error struct {
	Source  string
	Pointer string
	Message string
	// Unmatched means that the document is about a kind or resource that does not exist yet, and that may be created later.
	Unmatched bool
}

// Error renders "source:pointer: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%s: %s", e.Source, e.Pointer, e.Message)
}

// Schema is the compiled permission schema of every known kind. The zero Schema knows none.
type Schema struct{ parts Parts }

// Parts are what a schema is made of.
type Parts struct {
	Kinds  map[runtimeschema.GroupVersionKind]*Kind
	Failed map[runtimeschema.GroupVersionKind]error
	// Bodies are the trees of request bodies that write a part of an object of another kind. FailedBodies are those for which the tree of
	// that object is not known.
	Bodies       map[Body]*Kind
	FailedBodies map[Body]error
	// Scales are the bodies of the subresource scale of resources whose kind has hidden fields.
	Scales map[runtimeschema.GroupVersionResource]*Kind
	// ReplicasUnknown: see HidesReplicas.
	ReplicasUnknown map[runtimeschema.GroupResource]bool
	// Containing are the kinds that contain each fragment of the catalogue.
	Containing map[string][]runtimeschema.GroupKind
	// Containers are the resources of these kinds, for the fragments that sets may name.
	Containers map[string][]v1alpha1.ResourceRule
	// Sets are the UncoveredPermissionSets, nil for none.
	Sets Sets
}

// Body is an endpoint with the kind of one of its bodies.
type Body struct {
	Group, Resource, Subresource string
	Kind                         runtimeschema.GroupVersionKind
	// Version is the version of the resource, for a Scale, because each version has its own path of replicas. It is "" for all versions
	// together.
	Version string
}

// New makes a schema.
func New(p Parts) *Schema { return &Schema{p} }

// Containing returns the kinds that contain a fragment of the catalogue, sorted. Callers must not change the slice.
func (s *Schema) Containing(fragment string) []runtimeschema.GroupKind {
	return s.parts.Containing[fragment]
}

// SetResources returns the resources that a set is about: those that it names, or those that contain its fragment. None means every resource.
func (s *Schema) SetResources(spec *v1alpha1.UncoveredPermissionSetSpec) []v1alpha1.ResourceRule {
	return SetResources(spec, s.parts.Containers)
}

// SetResources is that of a Schema. containers are the resources that contain each fragment.
func SetResources(spec *v1alpha1.UncoveredPermissionSetSpec, containers map[string][]v1alpha1.ResourceRule) []v1alpha1.ResourceRule {
	return append(slices.Clip(spec.Resources), containers[spec.Fragment]...)
}

// Kind returns the tree of a kind. The error is ErrUnknownKind, or the reason why the kind did not compile.
func (s *Schema) Kind(gvk runtimeschema.GroupVersionKind) (*Kind, error) {
	if k, ok := s.parts.Kinds[gvk]; ok {
		return k, nil
	}
	if err, ok := s.parts.Failed[gvk]; ok {
		return nil, fmt.Errorf("permission schema of %s: %w", gvk, err)
	}
	return nil, fmt.Errorf("permission schema of %s: %w: give a CustomResourceDefinition or an OpenAPI document that has it", gvk, ErrUnknownKind)
}

// Kinds returns every kind that compiled, in random order.
func (s *Schema) Kinds() []*Kind {
	out := make([]*Kind, 0, len(s.parts.Kinds))
	for _, k := range s.parts.Kinds {
		out = append(out, k)
	}
	return out
}

// Failed returns the kinds that did not compile, each with the reason.
func (s *Schema) Failed() map[runtimeschema.GroupVersionKind]error {
	out := make(map[runtimeschema.GroupVersionKind]error, len(s.parts.Failed))
	for gvk, err := range s.parts.Failed {
		out[gvk] = err
	}
	return out
}

// ScaleSubresource writes the replicas of its parent.
const ScaleSubresource = "scale"

// scaleKind is the kind of the body of that subresource.
var scaleKind = runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// ScaleKind returns the kind of the body of the subresource scale.
func ScaleKind() runtimeschema.GroupVersionKind { return scaleKind }

// KindFor returns the tree for a body of a kind that is written through a resource. It returns the result of Kind, unless the body is of
// another kind than the object that it writes. Then the fields of the body have the verbs of the object's fields that they become, and
// the object's barriers hold, including those of UncoveredPermissionSets. The errors are those of Kind for the body and the object.
func (s *Schema) KindFor(gvk runtimeschema.GroupVersionKind, ref ResourceRef) (*Kind, error) {
	at := Body{ref.Group, ref.Resource, ref.Subresource, gvk, ""}
	if err := s.parts.FailedBodies[at]; err != nil {
		return nil, err
	}
	if ref.Subresource == ScaleSubresource && gvk == scaleKind {
		if concealing := s.parts.Scales[runtimeschema.GroupVersionResource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource}]; concealing != nil {
			return concealing, nil
		}
	}
	for _, at.Version = range []string{ref.Version, ""} {
		if k := s.parts.Bodies[at]; k != nil {
			return k, nil
		}
	}
	return s.Kind(gvk)
}

// IsScale reports whether a body is a Scale, which shows the replicas of another object.
func IsScale(body runtimeschema.GroupKind) bool { return body == scaleKind.GroupKind() }

// IsScale reports whether objects of the kind are written through the scale subresource of others.
func (k *Kind) IsScale() bool { return IsScale(k.GroupKind()) }

// HidesReplicas reports whether it is not known which field the scale subresource of a resource writes. Then every write of a Scale must pass
// every barrier of the object, because any field may be that one.
func (s *Schema) HidesReplicas(resource runtimeschema.GroupResource) bool {
	return s.parts.ReplicasUnknown[resource]
}

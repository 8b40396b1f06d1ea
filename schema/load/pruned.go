package load

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
)

// prunes returns a function that reports whether the API server prunes an object of a version that a user applied. It returns nil if
// server-side apply accepts exactly the fields that pruning keeps: server-side apply takes unknown fields everywhere below a part that keeps
// them, and pruning does not.
func prunes(v *apiextensionsv1.CustomResourceDefinitionVersion) (func(object map[string]any) bool, error) {
	s, err := structural(v)
	if err != nil || s == nil || !prunesBelow(s, false) {
		return nil, err
	}
	return func(object map[string]any) bool {
		track := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
		return len(pruning.PruneWithOptions(runtime.DeepCopyJSON(object), s, true, track)) > 0
	}, nil
}

// prunesBelow reports whether a part of a schema does not keep unknown fields, although a part above it does. kept is whether one does.
func prunesBelow(s *structuralschema.Structural, kept bool) bool {
	a := s.AdditionalProperties
	switch {
	case a != nil && a.Structural == nil && a.Bool:
		return true // Any value is kept, but no field of a value that is an object.
	case kept && s.Type == "object" && !s.XPreserveUnknownFields && a == nil:
		return true
	}
	kept = kept || s.XPreserveUnknownFields
	for name := range s.Properties {
		property := s.Properties[name]
		if prunesBelow(&property, kept) {
			return true
		}
	}
	if a != nil && a.Structural != nil && prunesBelow(a.Structural, kept) {
		return true
	}
	return s.Items != nil && prunesBelow(s.Items, kept)
}

package load

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// reading returns a function that brings an object of a version into the form in which readers get it, as the API server does when it reads
// the object from its store: see compile.Topology.Reads. Server-side apply shows more in a review: null and empty fields of
// metadata, and fields that pruning drops, because it takes unknown fields everywhere below a part that keeps them.
func reading(v *apiextensionsv1.CustomResourceDefinitionVersion) (func(object map[string]any) bool, error) {
	s, err := structural(v)
	if err != nil {
		return nil, err
	}
	mayDrop := s != nil && prunesBelow(s, false)
	// The function lives as long as the Schema, and a schema has much more than it reads.
	s = readingOutline(s, mayDrop)
	return func(object map[string]any) bool {
		if mayDrop && len(pruning.PruneWithOptions(object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})) > 0 {
			return false
		}
		// Their entries hold JSON of their own, and take long.
		metadata, _ := object["metadata"].(map[string]any)
		owners, owned := metadata["managedFields"]
		delete(metadata, "managedFields")
		if objectmeta.Coerce(nil, object, s, true, true) != nil {
			return false
		}
		if read, is := object["metadata"].(map[string]any); is && owned {
			read["managedFields"] = owners
		}
		return true
	}, nil
}

// readingOutline returns the part of a schema that decides how an object is read, nil if there is none: where embedded resources are, and, if
// prunes, which fields are known and which parts keep unknown ones. Coerce and PruneWithOptions do the same with it as with s.
func readingOutline(s *structuralschema.Structural, prunes bool) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	out := &structuralschema.Structural{Extensions: structuralschema.Extensions{XPreserveUnknownFields: s.XPreserveUnknownFields, XEmbeddedResource: s.XEmbeddedResource}}
	out.Items = readingOutline(s.Items, prunes)
	if a := s.AdditionalProperties; a != nil {
		within := readingOutline(a.Structural, prunes)
		if prunes || within != nil {
			out.AdditionalProperties = &structuralschema.StructuralOrBool{Structural: within, Bool: a.Bool}
		}
	}
	for name := range s.Properties {
		property := s.Properties[name]
		within := readingOutline(&property, prunes)
		if within == nil {
			// additionalProperties are about the fields that are not properties.
			if out.AdditionalProperties == nil {
				continue
			}
			within = &structuralschema.Structural{}
		}
		if out.Properties == nil {
			out.Properties = map[string]structuralschema.Structural{}
		}
		out.Properties[name] = *within
	}
	if !prunes && !out.XEmbeddedResource && out.Items == nil && out.AdditionalProperties == nil && len(out.Properties) == 0 {
		return nil
	}
	return out
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

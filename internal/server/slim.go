package server

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// slim drops what nobody reads of a definition: its owners and, most of many a definition, what its
// fields are said to be.
func slim(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	u.SetManagedFields(nil)
	spec, _ := u.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		if version, ok := version.(map[string]any); ok {
			if validation, ok := version["schema"].(map[string]any); ok {
				undescribe(validation["openAPIV3Schema"])
			}
		}
	}
	return object, nil
}

// undescribe goes where schemas are, and nowhere else: "description" may be a property, or stand in a default.
func undescribe(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	delete(s, "description")
	for _, key := range []string{"items", "additionalProperties", "not"} {
		undescribe(s[key])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if alternatives, ok := s[key].([]any); ok {
			for _, alternative := range alternatives {
				undescribe(alternative)
			}
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, property := range properties {
			undescribe(property)
		}
	}
}

package server

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// slim removes the parts of a definition that fieldperm does not read: its managed fields, and the descriptions of its fields,
// which are the largest part of many definitions.
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

// undescribe walks schemas only, because elsewhere "description" may be the name of a property or part of a default.
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

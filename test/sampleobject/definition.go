package sampleobject

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// assumedName is the name of an object during a check, if its definition does not require another name.
const assumedName = "fieldperm-canary"

// custom searches for an object that fits the schema of one version of the definition.
func custom(gvk runtimeschema.GroupVersionKind, definition *unstructured.Unstructured) (map[string]any, error) {
	version, err := versionOf(gvk, definition)
	if err != nil {
		return nil, err
	}
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return map[string]any{}, nil
	}
	root := node{schema: &apiextensions.JSONSchemaProps{}, memo: newMemo()}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, root.schema, nil); err != nil {
		return nil, fmt.Errorf("definition %q: %w", definition.GetName(), err)
	}
	if root.structural, err = structuralschema.NewStructural(root.schema); err != nil {
		return nil, fmt.Errorf("definition %q is not structural: %w", definition.GetName(), err)
	}
	s := newSearch(root)
	if version.Subresources != nil && version.Subresources.Status != nil {
		s.dropped = "status"
		s.top = root.without(s.dropped)
	}
	return s.root(gvk)
}

// versionOf decodes one version of a definition.
func versionOf(gvk runtimeschema.GroupVersionKind, definition *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinitionVersion, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, crd); err != nil {
		return nil, fmt.Errorf("definition %q: %w", definition.GetName(), err)
	}
	if crd.Spec.Group != gvk.Group || crd.Spec.Names.Kind != gvk.Kind {
		return nil, fmt.Errorf("definition %q is of %s.%s", crd.Name, crd.Spec.Names.Kind, crd.Spec.Group)
	}
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version })
	if at < 0 {
		return nil, fmt.Errorf("definition %q has no version %q", crd.Name, gvk.Version)
	}
	return &crd.Spec.Versions[at], nil
}

// root searches for a complete object, under each name that the definition may require.
func (s *search) root(gvk runtimeschema.GroupVersionKind) (map[string]any, error) {
	var first error
	for _, name := range append([]string{""}, s.names()...) {
		s.identity = map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{"name": name}}
		if name == "" {
			s.identity["metadata"] = map[string]any{"name": assumedName}
		}
		values, err := s.values(s.top, 1)
		if err == nil {
			return s.finish(values[0], name)
		}
		if first == nil {
			first = err
		}
		if errors.Is(err, errTooMany) {
			break
		}
	}
	return nil, first
}

// finish checks a complete object in the same way as the API server.
func (s *search) finish(value any, name string) (map[string]any, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the schema wants a %T: only objects can be created", value)
	}
	whole := s.identified(object)
	defaulting.Default(whole, s.top.structural)
	faults := listtype.ValidateListSetsAndMaps(nil, s.top.structural, whole)
	faults = append(faults, objectmeta.Validate(context.Background(), nil, whole, s.top.structural, false)...)
	if err := faults.ToAggregate(); err != nil {
		return nil, fmt.Errorf("no valid object was found: %w", err)
	}
	object = runtime.DeepCopyJSON(object) // its parts may be shared with other objects
	if name != "" {
		object["metadata"] = map[string]any{"name": name}
	}
	return object, nil
}

// identified returns a copy of an object with the fields that the caller will add.
func (s *search) identified(object map[string]any) map[string]any {
	whole := runtime.DeepCopyJSON(object)
	for key, value := range s.identity {
		whole[key] = runtime.DeepCopyJSONValue(value)
	}
	return whole
}

// given reports whether the caller sets a field of the complete object, so that the search must not.
func (s *search) given(name string) bool {
	return name == s.dropped || s.identity[name] != nil
}

// names returns the names that the schema of metadata or its rules mention.
func (s *search) names() []string {
	var out []string
	if metadata, ok := s.top.property("metadata"); ok {
		if name, ok := metadata.property("name"); ok {
			values, _ := s.values(name, 4) // on an error only the words remain
			for _, value := range values {
				if text, ok := value.(string); ok {
					out = append(out, text)
				}
			}
		}
	}
	return append(out, s.words...)
}

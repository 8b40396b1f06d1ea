package sources

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Definition is a CustomResourceDefinition in little memory. Decoded, the schemas take ten times the memory of their JSON, and they are
// read only when they change. A Definition is read only.
type Definition struct {
	// Unstructured is the definition without the schemas of its versions, managed fields and descriptions.
	*unstructured.Unstructured
	// schemas is the JSON of the schemas, by the index of the version.
	schemas string
}

// NewDefinition takes over a CustomResourceDefinition: the caller must not use it afterwards.
func NewDefinition(u *unstructured.Unstructured) (*Definition, error) {
	slim(u)
	schemas := map[int]any{}
	for i, version := range versionsOf(u) {
		if version["schema"] != nil {
			schemas[i] = version["schema"]
			delete(version, "schema")
		}
	}
	text, err := json.Marshal(schemas)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: schemas: %w", u.GetName(), err)
	}
	return &Definition{Unstructured: u, schemas: string(text)}, nil
}

// NewDefinitions is NewDefinition for a list.
func NewDefinitions(list []*unstructured.Unstructured) ([]*Definition, error) {
	out := make([]*Definition, 0, len(list))
	for _, u := range list {
		d, err := NewDefinition(u)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// TransformDefinition makes the objects of an informer Definitions. It is a cache.TransformFunc and returns all other objects unchanged.
func TransformDefinition(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return NewDefinition(u)
	}
	return object, nil
}

// Whole returns a copy with the schemas.
func (d *Definition) Whole() (*unstructured.Unstructured, error) {
	out := d.DeepCopy()
	schemas := map[int]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(d.schemas), &schemas); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %q: schemas: %w", d.GetName(), err)
	}
	for i, version := range versionsOf(out) {
		if schema, ok := schemas[i]; ok {
			version["schema"] = schema
		}
	}
	return out, nil
}

// kind returns the kind that the definition names.
func (d *Definition) kind() runtimeschema.GroupKind {
	group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
	return runtimeschema.GroupKind{Group: group, Kind: kind}
}

// json returns the JSON of the whole definition.
func (d *Definition) json() ([]byte, error) {
	whole, err := d.Whole()
	if err != nil {
		return nil, err
	}
	return whole.MarshalJSON()
}

func (d *Definition) sameSpecification(other *Definition) bool {
	return d.schemas == other.schemas && reflect.DeepEqual(d.Object["spec"], other.Object["spec"])
}

// DeepCopyObject returns a Definition. Without this method the copy would be one without the schemas.
func (d *Definition) DeepCopyObject() runtime.Object {
	return &Definition{Unstructured: d.DeepCopy(), schemas: d.schemas}
}

// MarshalJSON returns an error: the JSON would lack the schemas.
func (d *Definition) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("CustomResourceDefinition %q: has no JSON of its own: use Whole", d.GetName())
}

// versionsOf returns the versions of a definition that are objects, by their index.
func versionsOf(u *unstructured.Unstructured) map[int]map[string]any {
	spec, _ := u.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	out := map[int]map[string]any{}
	for i, version := range versions {
		if version, ok := version.(map[string]any); ok {
			out[i] = version
		}
	}
	return out
}

// slim removes the parts of a definition that fieldperm does not read: its managed fields, and the descriptions of its fields,
// which are the largest part of many definitions.
func slim(u *unstructured.Unstructured) {
	u.SetManagedFields(nil)
	for _, version := range versionsOf(u) {
		if validation, ok := version["schema"].(map[string]any); ok {
			undescribe(validation["openAPIV3Schema"])
		}
	}
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

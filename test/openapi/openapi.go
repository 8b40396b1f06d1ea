// Package openapi reads the types that an API server publishes: the parts that are needed to make values.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Type is a type in an OpenAPI v3 document.
type Type struct {
	Ref        string                           `json:"$ref"`
	AllOf      []*Type                          `json:"allOf"`
	OneOf      []*Type                          `json:"oneOf"`
	Type       string                           `json:"type"`
	Format     string                           `json:"format"`
	Enum       []any                            `json:"enum"`
	Properties map[string]*Type                 `json:"properties"`
	Required   []string                         `json:"required"`
	Items      *Type                            `json:"items"`
	Additional json.RawMessage                  `json:"additionalProperties"`
	ListType   string                           `json:"x-kubernetes-list-type"`
	MapType    string                           `json:"x-kubernetes-map-type"`
	Kinds      []runtimeschema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`

	// Name is the name of the type in its document, empty if it has none there.
	Name string `json:"-"`
	// Values is the type of a map's values, nil for other types.
	Values *Type `json:"-"`
}

// UnmarshalJSON reads a type and, for a map, the type of its values.
func (t *Type) UnmarshalJSON(data []byte) error {
	type plain Type
	if err := json.Unmarshal(data, (*plain)(t)); err != nil {
		return err
	}
	// The field may be a boolean instead of a type.
	if len(t.Additional) > 0 && t.Additional[0] == '{' {
		t.Values = &Type{}
		return json.Unmarshal(t.Additional, t.Values)
	}
	return nil
}

// Document has the types of one API group and version by their names.
type Document map[string]*Type

// Parse reads a document.
func Parse(raw []byte) (Document, error) {
	var content struct {
		Components struct {
			Schemas Document `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	for name, t := range content.Components.Schemas {
		t.Name = name
	}
	return content.Components.Schemas, nil
}

// Path is the URL path at which a server publishes the types of a group and version.
func Path(gv runtimeschema.GroupVersion) string {
	if gv.Group == "" {
		return "/openapi/v3/api/" + gv.Version
	}
	return "/openapi/v3/apis/" + gv.String()
}

// Kind returns the type of a kind, nil if the document has none.
func (d Document) Kind(gvk runtimeschema.GroupVersionKind) *Type {
	for _, name := range slices.Sorted(maps.Keys(d)) {
		// A type that stands for many kinds is the type of request options.
		if t := d[name]; len(t.Kinds) == 1 && t.Kinds[0] == gvk {
			return t
		}
	}
	return nil
}

// Resolve follows references. A reference without a target gives a type without any information.
func (d Document) Resolve(t *Type) *Type {
	for t != nil {
		switch {
		case t.Ref != "":
			t = d[strings.TrimPrefix(t.Ref, "#/components/schemas/")]
		case len(t.AllOf) == 1 && t.Type == "" && len(t.Properties) == 0:
			t = t.AllOf[0]
		default:
			return t
		}
	}
	return &Type{}
}

//go:build integration

package endpoints

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// model is as much of a type in an OpenAPI v3 document as it takes to make values of it.
type model struct {
	Ref        string                           `json:"$ref"`
	AllOf      []*model                         `json:"allOf"`
	OneOf      []*model                         `json:"oneOf"`
	Type       string                           `json:"type"`
	Format     string                           `json:"format"`
	Enum       []any                            `json:"enum"`
	Properties map[string]*model                `json:"properties"`
	Items      *model                           `json:"items"`
	Values     json.RawMessage                  `json:"additionalProperties"`
	Kinds      []runtimeschema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// types are those of one API group and version.
type types map[string]*model

// types returns the types that the server publishes for a group and version, which are read once.
func (r *recorder) types(gv runtimeschema.GroupVersion) (types, error) {
	if known, ok := r.documents[gv]; ok {
		return known, nil
	}
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	answer, err := r.send("GET", path, nil)
	if err != nil {
		return nil, err
	}
	if answer.code != 200 {
		return nil, fmt.Errorf("GET %s: %d", path, answer.code)
	}
	var document struct {
		Components struct {
			Schemas types `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(answer.raw, &document); err != nil {
		return nil, err
	}
	r.documents[gv] = document.Components.Schemas
	return document.Components.Schemas, nil
}

func (t types) kind(gvk runtimeschema.GroupVersionKind) *model {
	for _, m := range t {
		if len(m.Kinds) > 0 && slices.Contains(m.Kinds, gvk) && m.Properties != nil {
			return m
		}
	}
	return nil
}

// resolve follows references. The name is that of the type, empty if it has none.
func (t types) resolve(m *model) (*model, string) {
	name := ""
	for m != nil {
		switch {
		case m.Ref != "":
			name = strings.TrimPrefix(m.Ref, "#/components/schemas/")
			m = t[name]
		case len(m.AllOf) == 1 && m.Type == "" && m.Properties == nil:
			m = m.AllOf[0]
		default:
			return m, name
		}
	}
	return nil, ""
}

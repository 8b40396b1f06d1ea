//go:build integration

package fields

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
)

// model is as much of a schema of OpenAPI v3 as it takes to make values.
type model struct {
	Ref        string                           `json:"$ref"`
	AllOf      []*model                         `json:"allOf"`
	OneOf      []*model                         `json:"oneOf"`
	Type       string                           `json:"type"`
	Format     string                           `json:"format"`
	Enum       []any                            `json:"enum"`
	Properties map[string]*model                `json:"properties"`
	Required   []string                         `json:"required"`
	Items      *model                           `json:"items"`
	Values     json.RawMessage                  `json:"additionalProperties"`
	ListType   string                           `json:"x-kubernetes-list-type"`
	Kinds      []runtimeschema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`

	// name of the component, values is what Values has: both are filled in by resolve.
	name   string
	values *model
}

// types are the schemas of all kinds of a server, by group and version.
type types map[runtimeschema.GroupVersion]map[string]*model

func serverTypes(t *testing.T, client *discovery.DiscoveryClient) types {
	t.Helper()
	index, err := openapi.NewClientWithContext(client.RESTClient()).PathsWithContext(t.Context())
	must(t, err)
	out := types{}
	for path, source := range index {
		parts := strings.Split(path, "/")
		gv := runtimeschema.GroupVersion{}
		switch {
		case parts[0] == "api" && len(parts) == 2:
			gv.Version = parts[1]
		case parts[0] == "apis" && len(parts) == 3:
			gv.Group, gv.Version = parts[1], parts[2]
		default:
			continue
		}
		raw, err := source.SchemaWithContext(t.Context(), "application/json")
		must(t, err)
		var document struct {
			Components struct {
				Schemas map[string]*model `json:"schemas"`
			} `json:"components"`
		}
		must(t, json.Unmarshal(raw, &document))
		out[gv] = document.Components.Schemas
		for name, m := range out[gv] {
			m.name = name
		}
	}
	return out
}

// kind returns the schema of a kind, nil if the server has none.
func (ts types) kind(gvk runtimeschema.GroupVersionKind) *schemas {
	if gvk.Kind == "Scale" {
		// Scale has no resource of its own, and is in the documents of its parents.
		for gv, components := range ts {
			if m := components["io.k8s.api.autoscaling.v1.Scale"]; m != nil && gv.Group == "apps" {
				return &schemas{components: components, root: m}
			}
		}
	}
	for _, name := range sorted(ts[gvk.GroupVersion()]) {
		m := ts[gvk.GroupVersion()][name]
		if slices.Contains(m.Kinds, gvk) && len(m.Kinds) == 1 {
			return &schemas{components: ts[gvk.GroupVersion()], root: m}
		}
	}
	return nil
}

// schemas are those of one document, with the root of one kind.
type schemas struct {
	components map[string]*model
	root       *model
}

// resolve follows references.
func (s *schemas) resolve(m *model) *model {
	for m != nil {
		switch {
		case m.Ref != "":
			m = s.components[strings.TrimPrefix(m.Ref, "#/components/schemas/")]
		case len(m.AllOf) == 1 && len(m.Properties) == 0:
			m = m.AllOf[0]
		default:
			if m.values == nil && len(m.Values) > 0 {
				var values model
				if json.Unmarshal(m.Values, &values) == nil {
					m.values = &values
				}
			}
			return m
		}
	}
	return &model{}
}

// step is one of a path: a field, or any item of a list or key of a map.
type step struct {
	field string
	any   bool
}

type path []step

func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		if s.any {
			b.WriteString("[*]")
		} else {
			b.WriteString("." + s.field)
		}
	}
	return b.String()
}

func (p path) then(s step) path { return append(p[:len(p):len(p)], s) }

// name is the last field's.
func (p path) name() string {
	for i := len(p) - 1; i >= 0; i-- {
		if !p[i].any {
			return p[i].field
		}
	}
	return ""
}

// walk visits every field below m, parents first. A component within itself is not entered again.
func (s *schemas) walk(at path, m *model, within []string, visit func(path, *model) bool) {
	m = s.resolve(m)
	if m.name != "" {
		if slices.Contains(within, m.name) {
			return
		}
		within = append(within[:len(within):len(within)], m.name)
	}
	enter := func(p path, child *model) {
		if visit(p, s.resolve(child)) {
			s.walk(p, child, within, visit)
		}
	}
	for _, name := range sorted(m.Properties) {
		enter(at.then(step{field: name}), m.Properties[name])
	}
	if m.Items != nil {
		enter(at.then(step{any: true}), m.Items)
	}
	if m.values != nil {
		enter(at.then(step{any: true}), m.values)
	}
}

package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// definition is the part of a CustomResourceDefinition that rules look at.
type definition struct {
	group, kind, plural string
	versions            []version
	converts            bool
}

// version is one version of a definition.
type version struct {
	name            string
	served, storage bool
	// schema is nil if the version has none. pointer leads to it.
	schema  map[string]any
	pointer string
}

// newDefinition reads a definition that package load has decoded without an error.
func newDefinition(raw json.RawMessage) *definition {
	var crd struct {
		Spec struct {
			Group      string `json:"group"`
			Names      struct{ Kind, Plural string }
			Conversion struct {
				Strategy string `json:"strategy"`
			} `json:"conversion"`
			Versions []struct {
				Name    string `json:"name"`
				Served  bool   `json:"served"`
				Storage bool   `json:"storage"`
				Schema  struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &crd); err != nil {
		return nil
	}
	d := &definition{group: crd.Spec.Group, kind: crd.Spec.Names.Kind, plural: crd.Spec.Names.Plural, converts: crd.Spec.Conversion.Strategy == "Webhook"}
	for i, v := range crd.Spec.Versions {
		d.versions = append(d.versions, version{
			name: v.Name, served: v.Served, storage: v.Storage, schema: v.Schema.OpenAPIV3Schema, pointer: fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema", i),
		})
	}
	return d
}

// version returns a version by its name, nil for none.
func (d *definition) version(name string) *version {
	for i := range d.versions {
		if d.versions[i].name == name {
			return &d.versions[i]
		}
	}
	return nil
}

// storage returns the storage version, nil for none.
func (d *definition) storage() *version {
	for i := range d.versions {
		if d.versions[i].storage {
			return &d.versions[i]
		}
	}
	return nil
}

// place is a schema inside of a version's schema.
type place struct {
	path    fieldpath.Pattern
	schema  map[string]any
	pointer string
}

// name returns the name of the field, "" for items, values and the root.
func (p place) name() string {
	if len(p.path) == 0 {
		return ""
	}
	return p.path[len(p.path)-1].Name
}

// below returns the places directly below, in order.
func (p place) below() []place {
	var out []place
	if properties, ok := p.schema["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if s, ok := properties[name].(map[string]any); ok {
				out = append(out, place{p.path.Child(fieldpath.Element{Name: name}), s, fieldpath.Pointer(p.pointer, "properties", name)})
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if s, ok := p.schema[keyword].(map[string]any); ok {
			out = append(out, place{p.path.Child(fieldpath.Element{Any: true}), s, fieldpath.Pointer(p.pointer, keyword)})
		}
	}
	return out
}

// root returns the place of a version's whole schema.
func (v *version) root() place { return place{schema: v.schema, pointer: v.pointer} }

// find returns the place of a path. A key of a map that a path names has the schema of all values.
func (v *version) find(path fieldpath.Pattern) (place, bool) {
	at := v.root()
	for _, e := range path {
		found := false
		var values place
		for _, next := range at.below() {
			last := next.path[len(next.path)-1]
			if last == e {
				at, found = next, true
				break
			}
			if last.Any && next.schema != nil && at.schema["items"] == nil {
				values = next
			}
		}
		if !found && !e.Any && values.schema != nil {
			at, found = values, true
		}
		if !found {
			return place{}, false
		}
	}
	return at, true
}

// typeOf returns the type of a schema as a word.
func typeOf(schema map[string]any) string {
	if intOrString, _ := schema["x-kubernetes-int-or-string"].(bool); intOrString {
		return "int-or-string"
	}
	text, _ := schema["type"].(string)
	return text
}

package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

const (
	keyGroupVersionKind = "x-kubernetes-group-version-kind"
	// formatIntOrString is the format of an IntOrString, which has no type in OpenAPI v3. Without a type, any value would fit it.
	formatIntOrString = "int-or-string"
)

// OpenAPIV3 decodes one document that a server publishes under /openapi/v3/apis/GROUP/VERSION. It returns the described kinds, including
// those of subresources (Scale), and the permission keys in its components. Lists, options and other messages are not kinds. The error
// joins all faults of the document.
func OpenAPIV3(source string, doc []byte) (compile.Topology, error) {
	var api spec3.OpenAPI
	if err := json.Unmarshal(doc, &api); err != nil {
		return compile.Topology{}, fault(source, "", "no OpenAPI v3 document: %v: give the JSON of /openapi/v3/apis/GROUP/VERSION", err)
	}
	topology := compile.Topology{Source: source, Kinds: map[runtimeschema.GroupVersionKind]string{}}
	if api.Components == nil {
		return topology, nil
	}
	for name, model := range api.Components.Schemas {
		if model == nil {
			return compile.Topology{}, fault(source, fieldpath.Pointer("/components/schemas", name), "is null: correct it where it is served")
		}
		if isObject(model) {
			for _, gvk := range groupVersionKinds(model) {
				topology.Kinds[gvk] = name
			}
		}
	}
	for _, model := range api.Components.Schemas {
		if len(model.Type) == 0 && model.Format == formatIntOrString {
			model.Type = spec.StringOrArray{"string"} // The converter then makes a scalar of any type, as in BuiltIn.
		}
	}
	types, err := schemaconv.ToSchemaFromOpenAPI(api.Components.Schemas, false)
	if err != nil {
		return compile.Topology{}, fault(source, "/components/schemas", "is no structural schema: %v: correct it where it is served", err)
	}
	topology.Types = types
	if err := typePermissions(&topology, doc); err != nil {
		return compile.Topology{}, err
	}
	if err := readPaths(&topology, &api); err != nil {
		return compile.Topology{}, err
	}
	return topology, nil
}

// isObject reports whether a schema is the kind of an object and not a list, options or a status. An object has ObjectMeta, or its schema
// is empty.
func isObject(model *spec.Schema) bool {
	metadata, ok := model.Properties["metadata"]
	if !ok {
		return len(model.Properties) == 0 && len(groupVersionKinds(model)) == 1
	}
	ref := metadata.Ref.String()
	if ref == "" && len(metadata.AllOf) == 1 {
		ref = metadata.AllOf[0].Ref.String()
	}
	return !strings.HasSuffix(path.Base(ref), ".ListMeta")
}

func groupVersionKinds(model *spec.Schema) []runtimeschema.GroupVersionKind {
	list, _ := model.Extensions[keyGroupVersionKind].([]any)
	var out []runtimeschema.GroupVersionKind
	for _, item := range list {
		fields, _ := item.(map[string]any)
		group, _ := fields["group"].(string)
		version, _ := fields["version"].(string)
		kind, _ := fields["kind"].(string)
		if version != "" && kind != "" {
			out = append(out, runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		}
	}
	return out
}

// typePermissions adds the permission keys of every component to the topology. The keys of a type itself are recorded where a field refers to it,
// because the field may have other keys.
func typePermissions(t *compile.Topology, doc []byte) error {
	source := t.Source
	if !bytes.Contains(doc, []byte(strings.TrimSuffix(keyPrefix, "-"))) {
		return nil
	}
	var raw struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(doc, &raw); err != nil {
		return fault(source, "/components/schemas", "%v: correct it where it is served", err)
	}
	roots := map[string]bool{}
	for _, name := range t.Kinds {
		roots[name] = true
	}
	t.TypePermissions, t.TypeContains = map[string][]compile.Entry{}, map[string][]compile.Contained{}
	var errs []error
	x := expansionOf(source)
	for _, name := range slices.Sorted(maps.Keys(raw.Components.Schemas)) {
		node, ok := raw.Components.Schemas[name].(map[string]any)
		if !ok {
			continue
		}
		f := &finder{source: source, components: raw.Components.Schemas}
		f.walk(node, "", fieldpath.Pointer("/components/schemas", name))
		if !roots[name] {
			f.entries = slices.DeleteFunc(f.entries, func(e compile.Entry) bool { return e.Path == "" })
		}
		guarded, faults := x.include(f.entries)
		if x.left < 0 {
			return errors.Join(faults...)
		}
		if len(guarded) > 0 {
			t.TypePermissions[name] = guarded
		}
		if len(x.contained) > 0 {
			t.TypeContains[name] = x.contained
		}
		errs = append(errs, slices.Concat(f.errs, faults)...)
	}
	return errors.Join(errs...)
}

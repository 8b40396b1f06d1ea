package markers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// visitSchema calls visit for a schema and for every schema below it that is a field, an item or a value, with its path and its JSON
// pointer.
func visitSchema(node map[string]any, path, pointer string, visit func(node map[string]any, path, pointer string)) {
	visit(node, path, pointer)
	if properties, ok := node["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if property, ok := properties[name].(map[string]any); ok {
				visitSchema(property, fieldpath.Extend(path, name), fieldpath.Pointer(pointer, "properties", name), visit)
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if item, ok := node[keyword].(map[string]any); ok {
			visitSchema(item, path+anyItem, fieldpath.Pointer(pointer, keyword), visit)
		}
	}
}

// versionSchemas calls visit for the schema of each version of a definition, with its index among the versions.
func versionSchemas(definition map[string]any, visit func(i int, version string, schema map[string]any)) {
	spec, _ := definition["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for i, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		holder, _ := version["schema"].(map[string]any)
		if schema, ok := holder["openAPIV3Schema"].(map[string]any); ok {
			visit(i, name, schema)
		}
	}
}

// versionPointer returns the JSON pointer of a version.
func versionPointer(i int) string { return fmt.Sprintf("/spec/versions/%d", i) }

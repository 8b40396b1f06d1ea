package oracle

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// readable is a stored custom resource as every reader gets it: the API server prunes it by the version in which it is
// stored, and fills in that version's defaults. Server-side apply stores what that takes away; nobody has ever seen it. But of a
// new object, what it was made with counts, if that is an empty map.
func (c *custom) readable(raw []byte, isNew bool) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	object, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	s, err := c.storage().structural()
	if err != nil {
		return nil, err
	}
	// The API server reads metadata into its own type, where null is the empty text, and writes no map that is null or empty.
	// Server-side apply leaves such.
	if m, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"labels", "annotations"} {
			inner, _ := m[name].(map[string]any)
			if len(inner) == 0 && (!isNew || inner == nil) {
				delete(m, name)
			}
			for key, value := range inner {
				if value == nil {
					inner[key] = ""
				}
			}
		}
	}
	pruning.Prune(object, s, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
	defaulting.Default(object, s)
	return json.Marshal(object)
}

// structural is the version's schema in the API server's own form.
func (v version) structural() (*structuralschema.Structural, error) {
	raw, err := json.Marshal(v.schema)
	if err != nil {
		return nil, err
	}
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(raw, &props); err != nil {
		return nil, fmt.Errorf("schema of version %q: %w", v.name, err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, fmt.Errorf("schema of version %q: %w", v.name, err)
	}
	return structuralschema.NewStructural(&internal)
}

package oracle

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// readable is a stored custom resource as every reader gets it: the API server prunes it by the version in which it is
// stored, and fills in that version's defaults. Server-side apply stores what that takes away; nobody has ever seen it. But of a
// new object, what it was made with counts, if that is an empty map. c is nil for fieldperm's own kinds, which keep nothing unseen.
// It tells whether something of the custom resource is seen by nobody.
func readable(c *custom, raw []byte, isNew bool) (out []byte, unseen bool, err error) {
	if raw == nil {
		return nil, false, nil
	}
	object, err := parseObject(raw)
	if err != nil {
		return nil, false, err
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
	if c != nil {
		s, err := c.storage().structural()
		if err != nil {
			return nil, false, err
		}
		unseen = len(pruning.PruneWithOptions(object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})) > 0
		defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
		defaulting.Default(object, s)
		c.nameOwned(object)
	}
	out, err = json.Marshal(object)
	return out, unseen, err
}

// nameOwned gives the renamed field the name of the stored version in every entry of managedFields, which has that of the version
// that the manager wrote in.
func (c *custom) nameOwned(object map[string]any) {
	if c.renamed == "" {
		return
	}
	list, _ := metadata(object)["managedFields"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		spec, _ := fields["f:spec"].(map[string]any)
		from := "f:" + c.renamedIn(versionOf(entry))
		if owned, there := spec[from]; there {
			delete(spec, from)
			spec["f:"+c.renamedIn(c.storage().name)] = owned
		}
	}
}

// versionOf returns the version that an object, or an entry of managedFields, was written in.
func versionOf(written map[string]any) string {
	gv, _ := written["apiVersion"].(string)
	return gv[strings.IndexByte(gv, '/')+1:]
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

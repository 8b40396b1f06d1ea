package oracle

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// readable returns a stored custom resource in the form that every reader receives: the API server prunes it by the version in which it is
// stored, reads metadata, also of embedded resources, into its own type, and fills in the defaults of that version. Server-side apply and
// merge patches store null in removed fields, which no reader ever receives. But if the object is new, an empty map that it was created with
// counts. c is nil for fieldperm's own kinds, which embed no resources. The second result says whether the custom resource has a part that
// no reader receives.
func readable(c *custom, raw []byte, isNew bool) (out []byte, unseen bool, err error) {
	if raw == nil {
		return nil, false, nil
	}
	object, err := parseObject(raw)
	if err != nil {
		return nil, false, err
	}
	if c != nil {
		s, err := c.storage().structural()
		if err != nil {
			return nil, false, err
		}
		unseen = len(pruning.PruneWithOptions(object, s, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})) > 0
		defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
		if err := objectmeta.Coerce(nil, object, s, false, true); err != nil {
			return nil, false, err
		}
		defaulting.Default(object, s)
	}
	if err := readMetadata(object, isNew); err != nil {
		return nil, false, err
	}
	if c != nil {
		c.nameOwned(object)
	}
	out, err = json.Marshal(object)
	return out, unseen, err
}

// readMetadata replaces the metadata of an object by what the API server reads of them: null is the empty value, and maps that are null or
// empty are left out. If the object is new, empty maps stay.
func readMetadata(object map[string]any, isNew bool) error {
	stored, _ := object["metadata"].(map[string]any)
	read, found, err := objectmeta.GetObjectMeta(object, true)
	if err != nil || !found {
		return err
	}
	if err := objectmeta.SetObjectMeta(object, read); err != nil {
		return err
	}
	for _, name := range []string{"labels", "annotations"} {
		if inner, is := stored[name].(map[string]any); is && isNew && len(inner) == 0 {
			metadata(object)[name] = inner
		}
	}
	return nil
}

// nameOwned renames the renamed field in every entry of managedFields to its name in the stored version. An entry has the name of the
// version in which the manager wrote.
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

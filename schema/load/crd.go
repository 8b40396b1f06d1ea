package load

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// verbScale is the verb for the replicas that a CustomResourceDefinition declares.
const verbScale = "scale"

// CRD decodes one CustomResourceDefinition, YAML or JSON. It returns the types of every served version, and the permissions in both
// forms: the keys in the schemas and the annotation. It accepts keys that only a newer API server knows, because a server has admitted
// them; Decode refuses them in files.
func CRD(source string, raw []byte) (compile.Documents, []error) {
	return customResource(source, raw, false)
}

// InlinePermissions returns the permission keys that an author wrote into the schemas of a CustomResourceDefinition, by version, served
// or not. The errors name the definition as their source.
func InlinePermissions(raw []byte) (map[string][]compile.Entry, []error) {
	d, errs := decodeDefinition("CustomResourceDefinition", raw, false)
	if len(errs) > 0 {
		return nil, errs
	}
	d.source = "CustomResourceDefinition " + d.crd.Name
	entries, errs := d.inline(false)
	if len(errs) > 0 {
		return nil, errs
	}
	return entries, nil
}

// definition is a decoded CustomResourceDefinition, also as a tree, because the typed form has no fields for the permission keys.
type definition struct {
	source string
	crd    apiextensionsv1.CustomResourceDefinition
	tree   map[string]any
}

func customResource(source string, raw []byte, strict bool) (compile.Documents, []error) {
	d, errs := decodeDefinition(source, raw, strict)
	if len(errs) > 0 {
		return compile.Documents{}, errs
	}
	if errs := d.check(); len(errs) > 0 {
		return compile.Documents{}, errs
	}
	inline, errs := d.inline(strict)
	annotated, more := d.annotated()
	errs = append(errs, more...)
	topology, err := d.topology()
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return compile.Documents{}, errs
	}
	docs, x := compile.Documents{Topologies: []compile.Topology{topology}}, expansionOf(source)
	// If there are two entries for one path, the later one counts: the author's over the derived one, and the annotation over the keys of
	// the schema, because a server keeps only the annotation.
	for _, part := range []struct {
		form    schema.Form
		entries map[string][]compile.Entry
	}{{schema.FormScale, d.scale()}, {schema.FormSchemaKeys, inline}, {schema.FormAnnotation, annotated}} {
		for _, version := range slices.Sorted(maps.Keys(part.entries)) {
			guarded, faults := x.include(part.entries[version])
			if errs = append(errs, faults...); x.left < 0 {
				return compile.Documents{}, errs
			}
			docs.Permissions = append(docs.Permissions, compile.PermissionDocument{
				Source: source, Rank: compile.RankCustomResource, Form: part.form,
				Group: d.crd.Spec.Group, Kind: d.crd.Spec.Names.Kind, Versions: []string{version},
				Entries: guarded, Contains: x.contained,
			})
		}
	}
	if len(errs) > 0 {
		return compile.Documents{}, errs
	}
	return docs, nil
}

func decodeDefinition(source string, raw []byte, strict bool) (*definition, []error) {
	raw, errs := single(source, raw)
	if len(errs) > 0 {
		return nil, errs
	}
	d := &definition{source: source}
	if errs := decodeStrict(source, "", raw, &d.tree); len(errs) > 0 {
		return nil, errs
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &d.crd); err != nil {
		return nil, []error{fault(source, "", "%s: correct the value", strings.TrimPrefix(err.Error(), "json: "))}
	}
	if !strict {
		return d, nil
	}
	// The finder checks the schemas, because it knows the permission keys.
	outline, err := json.Marshal(withoutSchemas(d.tree))
	if err != nil {
		return nil, []error{fault(source, "", "%v: correct the value", err)}
	}
	return d, decodeStrict(source, "", outline, &apiextensionsv1.CustomResourceDefinition{})
}

// withoutSchemas returns a tree without every value of the key openAPIV3Schema.
func withoutSchemas(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(tree))
		for key, value := range tree {
			if key != "openAPIV3Schema" {
				out[key] = withoutSchemas(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(tree))
		for i, value := range tree {
			out[i] = withoutSchemas(value)
		}
		return out
	}
	return tree
}

func (d *definition) check() []error {
	var errs []error
	spec := &d.crd.Spec
	for _, required := range []struct{ pointer, value string }{
		{"/spec/group", spec.Group}, {"/spec/names/kind", spec.Names.Kind}, {"/spec/names/plural", spec.Names.Plural},
	} {
		if required.value == "" {
			errs = append(errs, fault(d.source, required.pointer, "is empty: a CustomResourceDefinition needs it"))
		}
	}
	// A server never serves such a definition, whatever its versions, and its permissions must not apply to the real kind.
	if kind := (runtimeschema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind}); isBuiltIn(kind) {
		errs = append(errs, fault(d.source, "/spec/names/kind", "kind %q of group %q is built in: choose another group", kind.Kind, kind.Group))
	} else if endpoint.BuiltIn(spec.Group, spec.Names.Plural) {
		errs = append(errs, fault(d.source, "/spec/names/plural", "resource %q of group %q is built in: choose another group", spec.Names.Plural, spec.Group))
	}
	seen := map[string]bool{}
	for i, v := range spec.Versions {
		at := fmt.Sprintf("/spec/versions/%d", i)
		switch {
		case v.Name == "":
			errs = append(errs, fault(d.source, at+"/name", "is empty: name the version"))
		case seen[v.Name]:
			errs = append(errs, fault(d.source, at+"/name", "version %q stands twice: keep one of them", v.Name))
		}
		seen[v.Name] = true
	}
	if len(spec.Versions) == 0 {
		errs = append(errs, fault(d.source, "/spec/versions", "is empty: give at least one version"))
	}
	return errs
}

// inline returns the permission keys in the schemas, by version.
func (d *definition) inline(strict bool) (map[string][]compile.Entry, []error) {
	f := &finder{source: d.source}
	if strict {
		f.known = schemaKeywords()
	}
	out := map[string][]compile.Entry{}
	spec, _ := d.tree["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for i, item := range versions {
		version, _ := item.(map[string]any)
		holder, _ := version["schema"].(map[string]any)
		root, ok := holder["openAPIV3Schema"].(map[string]any)
		if !ok {
			continue
		}
		f.walk(root, "", fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema", i))
		if len(f.entries) > 0 {
			out[d.crd.Spec.Versions[i].Name] = f.entries
			f.entries = nil
		}
	}
	return out, f.errs
}

// schemaKeywords are the keys that apiextensions.k8s.io/v1 knows in a schema.
func schemaKeywords() map[string]bool {
	out := map[string]bool{}
	for field := range reflect.TypeFor[apiextensionsv1.JSONSchemaProps]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		out[name] = true
	}
	return out
}

// annotated decodes the annotation fieldperm.dev/permission-verbs.
func (d *definition) annotated() (map[string][]compile.Entry, []error) {
	text, ok := d.crd.Annotations[v1alpha1.PermissionVerbsAnnotation]
	if !ok {
		return nil, nil
	}
	at := fieldpath.Pointer("/metadata/annotations", v1alpha1.PermissionVerbsAnnotation)
	var versions map[string][]v1alpha1.FieldPermission
	if errs := decodeStrict(d.source, at, json.RawMessage(text), &versions); len(errs) > 0 {
		return nil, errs
	}
	var errs []error
	out := map[string][]compile.Entry{}
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		place := fieldpath.Pointer(at, version)
		if !slices.ContainsFunc(d.crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version }) {
			errs = append(errs, fault(d.source, place, "version %q does not exist: name one of spec.versions", version))
			continue
		}
		out[version] = entries(versions[version], place)
	}
	for _, v := range d.crd.Spec.Versions {
		if _, named := versions[v.Name]; !named && v.Served && barred(out) {
			errs = append(errs, fault(d.source, at, "says nothing of the served version %q, whose fields would have no barriers: add it, with [] for none", v.Name))
		}
	}
	return out, errs
}

// barred reports whether any version has a barrier.
func barred(versions map[string][]compile.Entry) bool {
	for _, list := range versions {
		if slices.ContainsFunc(list, isBarrier) {
			return true
		}
	}
	return false
}

func isBarrier(e compile.Entry) bool { return e.Excluded || e.ExcludedWhen != "" }

// scale returns the entries for the replicas that the scale subresource writes, so that the same verb allows a change through the object
// and through the Scale.
func (d *definition) scale() map[string][]compile.Entry {
	out := map[string][]compile.Entry{}
	for i, v := range d.crd.Spec.Versions {
		if v.Subresources == nil || v.Subresources.Scale == nil {
			continue
		}
		out[v.Name] = []compile.Entry{{
			FieldPermission: v1alpha1.FieldPermission{Path: v.Subresources.Scale.SpecReplicasPath, Verb: verbScale},
			Optional:        true,
			Pointer:         fmt.Sprintf("/spec/versions/%d/subresources/scale/specReplicasPath", i),
		}}
	}
	return out
}

// entries returns the permissions as entries with their pointers.
func entries(permissions []v1alpha1.FieldPermission, pointer string) []compile.Entry {
	out := make([]compile.Entry, 0, len(permissions))
	for i, p := range permissions {
		out = append(out, compile.Entry{FieldPermission: p, Pointer: fieldpath.Pointer(pointer, fmt.Sprint(i))})
	}
	return out
}

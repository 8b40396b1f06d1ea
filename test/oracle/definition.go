package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// drawnGroup ends the groups of drawn definitions.
const drawnGroup = ".oracle.test"

// properties is a schema, or a part of one.
type properties = map[string]any

// custom is a drawn CustomResourceDefinition.
type custom struct {
	group, kind string
	versions    []version
	webhook     bool
	scale       bool
	// cluster says that the objects of this definition are cluster-scoped.
	cluster bool
	// renamed is the field of the specification that every version except the first has under another name. It is set only if a webhook
	// converts without loss and the author of the definition says so.
	renamed string
	object  map[string]any
	// docs are the schemas by which the stored objects are judged. They contain every version, served or not.
	docs compile.Documents
}

type version struct {
	name            string
	served, storage bool
	schema          properties
}

func (c *custom) storage() version {
	return c.versions[slices.IndexFunc(c.versions, func(v version) bool { return v.storage })]
}

func (c *custom) version(name string) version {
	return c.versions[max(0, slices.IndexFunc(c.versions, func(v version) bool { return v.name == name }))]
}

func (c *custom) resource() Place { return Place{Group: c.group, Resource: "things"} }

// drawDefinition draws one definition with up to three versions, each a variant of the first.
func drawDefinition(d *draw, epoch, number int) *custom {
	c := &custom{group: fmt.Sprintf("d%d.e%d%s", number, epoch, drawnGroup), kind: fmt.Sprintf("Thing%d", number), scale: d.oneIn(2)}
	base := drawRoot(d, c.scale)
	names := []string{"v1", "v1beta1", "v2"}[:pick(d, []int{1, 2, 2, 2, 3})]
	c.webhook = len(names) > 1 && d.oneIn(4)
	c.cluster = d.oneIn(4)
	if fields := sortedKeys(base["properties"].(properties)["spec"].(properties)["properties"].(properties)); c.webhook && d.oneIn(2) {
		c.renamed = pick(d, slices.DeleteFunc(fields, func(name string) bool { return name == "replicas" }))
	}
	for i, name := range names {
		v := version{name: name, served: true, schema: base}
		if i > 0 && c.renamed != "" {
			v.schema = runtime.DeepCopyJSON(base)
			renameField(v.schema, c.renamed)
			v.served = !d.oneIn(8)
		} else if i > 0 {
			v.schema = runtime.DeepCopyJSON(base)
			for range 1 + d.IntN(3) {
				if c.webhook {
					varyFields(d, v.schema)
				} else {
					vary(d, v.schema)
				}
			}
			v.served = !d.oneIn(8)
		}
		c.versions = append(c.versions, v)
	}
	c.versions[pick(d, []int{0, 0, 0, d.IntN(len(names))})].storage = true
	c.object = c.write(d, true)
	if errs := c.load(); len(errs) > 0 {
		// fieldperm refuses a barrier on a field that another version would prune. In that case the definition is written without barriers.
		c.object = c.write(d, false)
		c.docs = compile.Documents{}
		_ = c.load()
	}
	return c
}

// load compiles the schemas by which the stored objects are judged.
func (c *custom) load() []error {
	raw, err := json.Marshal(c.object)
	if err != nil {
		return []error{err}
	}
	if _, errs := load.CRD(c.group, raw); len(errs) > 0 {
		return errs
	}
	all, err := parseObject(raw)
	if err != nil {
		return []error{err}
	}
	list, _, _ := unstructured.NestedSlice(all, "spec", "versions")
	for _, v := range list {
		v.(map[string]any)["served"] = true
	}
	if err := unstructured.SetNestedSlice(all, list, "spec", "versions"); err != nil {
		return []error{err}
	}
	if raw, err = json.Marshal(all); err != nil {
		return []error{err}
	}
	docs, errs := load.CRD(c.group, raw)
	c.docs = docs
	return errs
}

// write makes the CustomResourceDefinition.
func (c *custom) write(d *draw, barriers bool) map[string]any {
	permissions := map[string][]v1alpha1.FieldPermission{}
	paths, scalars := shared(c.versions, isAny), shared(c.versions, isScalar)
	if c.renamed != "" {
		paths, scalars = pathsOf("", c.versions[0].schema, isAny), pathsOf("", c.versions[0].schema, isScalar)
	}
	var guarded []v1alpha1.FieldPermission
	for i, path := range d.some(paths, 3) {
		if !slices.ContainsFunc(guarded, func(p v1alpha1.FieldPermission) bool { return p.Path == path }) {
			guarded = append(guarded, v1alpha1.FieldPermission{Path: path, Verb: fmt.Sprintf("oracle.test/f%d", i), Excluded: barriers && d.oneIn(2)})
			if last := &guarded[len(guarded)-1]; barriers && !last.Excluded && d.oneIn(2) && slices.Contains(scalars, path) {
				last.ExcludedWhen = pick(d, excludedWhen)
			}
		}
	}
	var versions []any
	for _, v := range c.versions {
		for _, p := range guarded {
			p.Path = c.pathIn(v.name, p.Path)
			permissions[v.name] = append(permissions[v.name], p)
		}
		one := map[string]any{"name": v.name, "served": v.served, "storage": v.storage, "schema": map[string]any{"openAPIV3Schema": v.schema}}
		subresources := map[string]any{"status": map[string]any{}}
		if c.scale {
			subresources["scale"] = map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
		}
		one["subresources"] = subresources
		versions = append(versions, one)
	}
	text, err := json.Marshal(permissions)
	if err != nil {
		return nil
	}
	spec := map[string]any{
		"group": c.group, "scope": c.scope(), "versions": versions,
		"names": map[string]any{"kind": c.kind, "plural": "things", "singular": "thing", "listKind": c.kind + "List"},
	}
	object := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things." + c.group, "annotations": map[string]any{v1alpha1.PermissionVerbsAnnotation: string(text)}},
		"spec":     spec,
	}
	if c.renamed != "" {
		child(metadata(object), "annotations")[v1alpha1.LosslessConversionAnnotation] = "true"
	}
	if c.webhook {
		spec["conversion"] = map[string]any{"strategy": "Webhook"}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	out, err := parseObject(raw)
	if err != nil {
		return nil
	}
	return out
}

// excludedWhen are conditions of barriers that work on any scalar. A condition that fails counts as true.
var excludedWhen = []string{"self == null", "oldSelf == null", "oldSelf != null", `self == "a"`, "self == 3", "size(self) > 1"}

func (c *custom) scope() string {
	if c.cluster {
		return "Cluster"
	}
	return "Namespaced"
}

// another is the name that all versions except the first use for the renamed field.
const another = "Otherwise"

// renameField renames a field of the specification in a schema, in place.
func renameField(root properties, name string) {
	fields := root["properties"].(properties)["spec"].(properties)["properties"].(properties)
	fields[name+another] = fields[name]
	delete(fields, name)
}

// renamedIn returns the name of the renamed field in a version.
func (c *custom) renamedIn(version string) string {
	if version == c.versions[0].name {
		return c.renamed
	}
	return c.renamed + another
}

// pathIn translates a path of the first version to a version.
func (c *custom) pathIn(version, path string) string {
	rest, renamed := strings.CutPrefix(path, ".spec."+c.renamed)
	if c.renamed == "" || !renamed || rest != "" && rest[0] != '.' {
		return path
	}
	return ".spec." + c.renamedIn(version) + rest
}

func isAny(properties) bool { return true }

// isScalar reports whether a schema declares nothing but a scalar.
func isScalar(s properties) bool {
	switch s["type"] {
	case "string", "integer", "number", "boolean":
		return true
	}
	return s["x-kubernetes-int-or-string"] == true
}

// shared are the paths that every version has, where its schema fits.
func shared(versions []version, fits func(properties) bool) []string {
	var out []string
	for i, v := range versions {
		paths := pathsOf("", v.schema, fits)
		if i == 0 {
			out = paths
		}
		out = slices.DeleteFunc(out, func(p string) bool { return !slices.Contains(paths, p) })
	}
	return out
}

func pathsOf(path string, s properties, fits func(properties) bool) []string {
	var out []string
	fields, _ := s["properties"].(properties)
	for _, name := range sortedKeys(fields) {
		at := path + "." + name
		if at == ".metadata" {
			continue
		}
		inner, ok := fields[name].(properties)
		if fits(inner) {
			out = append(out, at)
		}
		if ok {
			out = append(out, pathsOf(at, inner, fits)...)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := s[name].(properties); ok {
			out = append(out, pathsOf(path+"[*]", inner, fits)...)
		}
	}
	return out
}

// drawDefinitions replaces the definitions of the last epoch.
func (w *world) drawDefinitions(ctx context.Context, d *draw) error {
	client, err := dynamic.NewForConfig(w.stack.Admin())
	if err != nil {
		return err
	}
	resource := client.Resource(runtimeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, c := range w.definitions {
		if err := resource.Delete(ctx, "things."+c.group, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	w.definitions, w.customs = nil, map[Place]*custom{}
	for i := range max(0, w.config.Definitions) {
		c := drawDefinition(d, w.epoch, i)
		if c.webhook {
			if err := w.converter.serve(c); err != nil {
				return err
			}
		}
		_, err := resource.Create(ctx, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.object)}, metav1.CreateOptions{})
		if err != nil {
			w.table.add(w.table.guards, "definition refused: "+short(err.Error()))
			continue
		}
		w.table.add(w.table.guards, fmt.Sprintf("definition with %d versions, conversion webhook %t, vouched for %t, scope %s", len(c.versions), c.webhook, c.renamed != "", c.scope()))
		w.definitions = append(w.definitions, c)
		w.customs[c.resource()] = c
	}
	return w.awaitDefinitions(ctx)
}

// probeNamespace is the namespace in which an object of the kind is created as a test.
func (c *custom) probeNamespace() string {
	if c.cluster {
		return ""
	}
	return metav1.NamespaceDefault
}

// awaitDefinitions waits until the API server serves them and fieldperm knows their schemas.
func (w *world) awaitDefinitions(ctx context.Context) error {
	if len(w.definitions) > 0 {
		if err := w.stack.AwaitGrants(ctx); err != nil {
			return err
		}
	}
	for _, c := range w.definitions {
		for _, v := range c.versions {
			if !v.served {
				continue
			}
			gvr := runtimeschema.GroupVersionResource{Group: c.group, Version: v.name, Resource: "things"}
			if err := w.stack.AwaitKindIn(ctx, gvr, c.kind, c.probeNamespace()); err != nil {
				return errors.Join(err, fmt.Errorf("definition: %v", c.object))
			}
		}
	}
	return nil
}

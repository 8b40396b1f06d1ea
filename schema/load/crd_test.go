package load

import (
	"os"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

func widgets(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/widgets.crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// verbsOf renders the verbs of a node, general to specific.
func verbsOf(n *schema.Node) string {
	var out []string
	for _, p := range n.Permissions() {
		text := p.Base().String()
		if p.ParameterName() != "" {
			text += "(" + p.ParameterName() + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestCRD_Topology(t *testing.T) {
	docs, errs := CRD("widgets", widgets(t))
	noErrors(t, errs)
	compiled := compileWith(t, docs)
	v1 := gvk("example.com", "v1", "Widget")
	spec := node(t, compiled, v1, "spec").Map()

	if d := spec.Child("replicas").Default(); string(d) != "1" {
		t.Errorf("the default of replicas is %q", d)
	}
	if n := spec.Child("port"); !n.AllowsScalar() {
		t.Error("int-or-string allows no scalar")
	}
	if l := spec.Child("parts").List(); l.Atomic() || len(l.Keys()) != 1 || l.Keys()[0].Name != "name" || l.Keys()[0].Emits != "part" {
		t.Error("parts are no list-map by name that emits part")
	}
	if l := spec.Child("words").List(); l.Atomic() || len(l.Keys()) != 0 {
		t.Error("words are no set")
	}
	if l := spec.Child("steps").List(); !l.Atomic() {
		t.Error("steps are not atomic")
	}
	if m := spec.Child("pair").Map(); !m.Atomic() {
		t.Error("pair is not atomic")
	}
	free := spec.Child("free")
	if n := free.Map().Child("any").Map().Child("depth"); !n.AllowsScalar() || n.Map() == nil || !n.List().Atomic() {
		t.Error("unknown fields are no granular maps and atomic lists")
	}
	embedded := spec.Child("child").Map()
	if !embedded.IsField("metadata") || embedded.Child("metadata").Map().Child("ownerReferences").List().Keys()[0].Name != "uid" || !embedded.IsField("kind") {
		t.Error("the embedded resource has no metadata of Kubernetes")
	}
	if verbs := verbsOf(embedded.Child("metadata").Map().Child("labels")); verbs != "" {
		t.Errorf("labels of the embedded resource have the verbs %s of the object's own", verbs)
	}
	metadata := node(t, compiled, v1, "metadata").Map()
	if metadata.Child("managedFields").Role() != schema.RoleOwnership || verbsOf(metadata.Child("labels").Map().Child("a")) != "granular:label(labelKey)" {
		t.Error("the catalogue does not cover the metadata of custom resources")
	}
	// In a version without a schema, every field except metadata is unknown.
	alpha := node(t, compiled, gvk("example.com", "v1alpha1", "Widget")).Map()
	if !alpha.IsField("metadata") || alpha.Child("spec").Map() == nil || alpha.Child("spec").Map().IsField("replicas") {
		t.Error("the version without a schema has fields")
	}
	if _, err := compiled.Kind(gvk("example.com", "v0", "Widget")); err == nil {
		t.Error("a version that is not served is a kind")
	}
}

func TestCRD_InlinePermissions(t *testing.T) {
	docs, errs := CRD("widgets", widgets(t))
	noErrors(t, errs)
	spec := node(t, compileWith(t, docs), gvk("example.com", "v1", "Widget"), "spec").Map()
	for got, want := range map[*schema.Node]string{
		spec.Child("colour"): "granular:example.com/colour",
		spec.Child("parts").List().Item().Map().Child("size"): "granular:example.com/size(part)",
		spec.Child("tags").Map().Child("a"):                   "granular:example.com/tag(tag)",
		spec.Child("replicas"):                                "granular:scale",
	} {
		if verbs := verbsOf(got); verbs != want {
			t.Errorf("verbs %q, want %q", verbs, want)
		}
	}
	if p := spec.Child("frozen").Permissions()[0]; !p.Bars(t.Context(), false, true) || p.Bars(t.Context(), true, false) {
		t.Error("excluded-when does not bar by value")
	}

	entries, errs := InlinePermissions(widgets(t))
	noErrors(t, errs)
	if len(entries) != 1 || len(entries["v1"]) != 6 {
		t.Fatalf("entries %+v", entries)
	}
	first := entries["v1"][0]
	if first.Path != ".spec.colour" || first.Pointer != "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour" {
		t.Errorf("first entry %+v", first)
	}
}

func annotate(raw []byte, annotation string) []byte {
	return []byte(strings.Replace(string(raw), "metadata:\n", "metadata:\n  annotations:\n    fieldperm.dev/permission-verbs: '"+annotation+"'\n", 1))
}

// A server keeps only the annotation, so the annotation takes precedence over the keys and over the derived scale.
func TestCRD_Annotation(t *testing.T) {
	docs, errs := CRD("widgets", annotate(widgets(t), `{"v1":[{"path":".spec.colour","verb":"example.com/paint"},{"path":".spec.replicas","verb":"example.com/amount"}],"v1alpha1":[{"path":".spec","verb":"example.com/all"}]}`))
	noErrors(t, errs)
	compiled := compileWith(t, docs)
	for got, want := range map[*schema.Node]string{
		node(t, compiled, gvk("example.com", "v1", "Widget"), "spec", "colour"):       "granular:example.com/paint",
		node(t, compiled, gvk("example.com", "v1", "Widget"), "spec", "replicas"):     "granular:example.com/amount",
		node(t, compiled, gvk("example.com", "v1alpha1", "Widget"), "spec"):           "granular:example.com/all",
		node(t, compiled, gvk("example.com", "v1", "Widget"), "spec"):                 "granular:specification",
		node(t, compiled, gvk("apps", "v1", "Deployment"), "spec", "replicas"):        "granular:scale",
		node(t, compiled, gvk("example.com", "v1", "Widget"), "metadata", "labels"):   "granular:labels",
		node(t, compiled, gvk("example.com", "v1alpha1", "Widget"), "spec", "colour"): "",
	} {
		if verbs := verbsOf(got); verbs != want {
			t.Errorf("verbs %q, want %q", verbs, want)
		}
	}
}

func TestCRD_Refuses(t *testing.T) {
	const notes = "f.yaml:/metadata/annotations/fieldperm.dev~1permission-verbs"
	replace := func(old, with string) []byte { return []byte(strings.Replace(string(widgets(t)), old, with, 1)) }
	colour := "x-kubernetes-permission-verb: example.com/colour"
	at := "f.yaml:/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	for name, test := range map[string]struct {
		raw      []byte
		begins   string
		contains []string
	}{
		"annotation is no JSON":            {annotate(widgets(t), "v1: []"), notes + ": ", nil},
		"annotation has an unknown key":    {annotate(widgets(t), `{"v1":[{"path":".spec","vreb":"a"}]}`), notes + "/v1/0/vreb: ", []string{"unknown field"}},
		"annotation has a key twice":       {annotate(widgets(t), `{"v1":[],"v1":[]}`), notes + "/v1: ", []string{"duplicate field"}},
		"annotation of another version":    {annotate(widgets(t), `{"v2":[]}`), notes + "/v2: ", []string{`version "v2" does not exist`, "spec.versions"}},
		"unknown permission key":           {replace(colour, "x-kubernetes-permission-verbs: a"), at + "colour/x-kubernetes-permission-verbs: ", []string{"is unknown", "x-kubernetes-permission-verb"}},
		"permission key of another type":   {replace(colour, "x-kubernetes-permission-verb: 3"), at + "colour/x-kubernetes-permission-verb: ", []string{"write a string"}},
		"empty permission key":             {replace(colour, `x-kubernetes-permission-verb: ""`), at + "colour/x-kubernetes-permission-verb: ", []string{"is empty"}},
		"excluded is false":                {replace(colour, "x-kubernetes-permission-excluded: false"), at + "colour/x-kubernetes-permission-excluded: ", []string{"write true"}},
		"permission key in an alternative": {replace(colour, "anyOf: [{x-kubernetes-permission-verb: a}]"), at + "colour/anyOf/0: ", []string{"do not count"}},
		"misspelt key in a schema":         {replace(colour, "x-kubernetes-permision-verb: a"), at + "colour/x-kubernetes-permision-verb: ", []string{"is unknown in a schema"}},
		"misspelt key below items":         {replace("name:\n                      type: string", "name:\n                      tpye: string"), at + "parts/items/properties/name/tpye: ", []string{"is unknown in a schema"}},
		"unknown key outside schemas":      {replace("scope: Namespaced", "scop: Namespaced"), "f.yaml:/spec/scop: ", []string{"unknown field"}},
		"unknown list type":                {replace("x-kubernetes-list-type: map", "x-kubernetes-list-type: bag"), "f.yaml:/spec/versions/0/schema/openAPIV3Schema: ", []string{"bag"}},
		"list-map without keys":            {replace("x-kubernetes-list-map-keys: [name]", "maxItems: 3"), "f.yaml:/spec/versions/0/schema/openAPIV3Schema: ", []string{"missing map keys"}},
		"reference":                        {replace("colour:\n                type: string", "colour:\n                $ref: '#/a'"), "f.yaml:/spec/versions/0/schema/openAPIV3Schema: ", []string{"$ref"}},
		"version twice":                    {replace("name: v1alpha1", "name: v1"), "f.yaml:/spec/versions/1/name: ", []string{"stands twice"}},
		"no kind":                          {replace("kind: Widget, ", ""), "f.yaml:/spec/names/kind: ", []string{"is empty"}},
		"built-in kind":                    {[]byte(strings.NewReplacer("group: example.com", "group: apps", "kind: Widget", "kind: Deployment").Replace(string(widgets(t)))), "f.yaml:/spec/names/kind: ", []string{`kind "Deployment" of group "apps" is built in`}},
		"built-in resource":                {[]byte(strings.NewReplacer("group: example.com", "group: apps", "plural: widgets", "plural: deployments").Replace(string(widgets(t)))), "f.yaml:/spec/names/plural: ", []string{`resource "deployments" of group "apps" is built in`}},
		"another version of a kind":        {[]byte(strings.NewReplacer("group: example.com", "group: networking.k8s.io", "kind: Widget", "kind: NetworkPolicy").Replace(string(widgets(t)))), "f.yaml:/spec/names/kind: ", []string{`kind "NetworkPolicy" of group "networking.k8s.io" is built in`}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, errs := Decode("f.yaml", test.raw)
			wantFaults(t, errs, test.begins, test.contains...)
			if len(docs.Permissions)+len(docs.Topologies) > 0 {
				t.Error("a faulty definition came through")
			}
		})
	}
}

// Keys of a newer server are not a fault in a definition that it serves; unknown permission keys are.
func TestCRD_LetsKeysOfNewerServersPass(t *testing.T) {
	newer := []byte(strings.NewReplacer("scope: Namespaced", "scope: Namespaced\n  novelty: {a: 1}", "format: int32", "", "tags:\n                type: object", "tags:\n                x-kubernetes-novelty: 1\n                type: object").Replace(string(widgets(t))))
	_, errs := CRD("widgets", newer)
	noErrors(t, errs)
	_, errs = CRD("f.yaml", []byte(strings.Replace(string(newer), "permission-verb: example.com/colour", "permission-novelty: a", 1)))
	wantFaults(t, errs, "f.yaml:/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour/x-kubernetes-permission-novelty: ")
}

// A property may have the name of a permission key, and defaults may hold anything.
func TestCRD_NamesAreNoKeys(t *testing.T) {
	raw := []byte(strings.Replace(string(widgets(t)), "colour:\n                type: string", "x-kubernetes-permission-odd: {type: string}\n              colour:\n                type: string\n                default: {x-kubernetes-permission-odd: 1}", 1))
	_, errs := Decode("f.yaml", raw)
	noErrors(t, errs)
}

// D10: the API server stores custom resources as JSON, and all other kinds as protobuf if a client sends protobuf.
func TestD10_CustomResourcesAreShownInFull(t *testing.T) {
	docs, errs := CRD("widgets", widgets(t))
	noErrors(t, errs)
	compiled := compileWith(t, docs)
	for _, kind := range compiled.Kinds() {
		if custom := kind.Group == "example.com"; kind.ShownInFull() != custom {
			t.Errorf("%s: shown in full: %t, want %t", kind, kind.ShownInFull(), custom)
		}
	}
}

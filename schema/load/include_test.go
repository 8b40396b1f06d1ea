package load

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// runner is a definition with a pod template, in part: metadata and a specification with some fields.
func runner(template string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: runners.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Runner, plural: runners, singular: runner}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {template: ` + template + `, name: {type: string}}}}}}
`
}

const (
	labelled = `metadata: {type: object, properties: {labels: {type: object, additionalProperties: {type: string}}}}`
	listed   = `containers: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, image: {type: string}}}}`
	loose    = `containers: {type: array, items: {type: object, properties: {name: {type: string}, image: {type: string}}}}`
	withKey  = `x-kubernetes-permission-include: podTemplate`
)

// partial is the template of an object with the given fields.
func partial(more string, fields ...string) string {
	return "{type: object, " + more + "properties: {" + labelled + ", spec: {type: object, properties: {nodeName: {type: string}, extra: {type: string}, " + strings.Join(fields, ", ") + "}}}}"
}

func compileFragments(t *testing.T, documents ...string) (*schema.Schema, []error) {
	t.Helper()
	catalogue, err := Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	docs := compile.Documents{Topologies: []compile.Topology{workloadKinds(t)}, Permissions: catalogue}
	for i, document := range documents {
		more, errs := Decode(fmt.Sprintf("d%d.yaml", i), []byte(document))
		if len(errs) > 0 {
			return nil, errs
		}
		docs = docs.Append(more)
	}
	return compile.Compile(docs)
}

// TestG5_FragmentsAreThoseOfTheCatalogue: a document gets the verbs of the catalogue, and no role.
func TestG5_FragmentsAreThoseOfTheCatalogue(t *testing.T) {
	r, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Fragments() {
		entries, _, err := expandFragment(compile.Entry{FieldPermission: fieldPermission(".x", name)})
		if err != nil || len(entries) == 0 || r.fragments[name] == nil {
			t.Errorf("fragment %q: %d entries, %v", name, len(entries), err)
		}
		for _, e := range entries {
			if e.Role != schema.RoleNone || e.IsBarrier() || e.Optional {
				t.Errorf("fragment %q: %s has a role or a barrier, or is optional: %+v", name, e.Path, e)
			}
		}
	}
}

// TestG5_APartialTemplateHasTheVerbsOfTheCatalogue, in a definition, in its annotation and in a PermissionSchema.
func TestG5_APartialTemplateHasTheVerbsOfTheCatalogue(t *testing.T) {
	annotated := strings.Replace(runner(partial("", listed)), "metadata: {name: runners.example.com}",
		`metadata: {name: runners.example.com, annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.template","include":"podTemplate"}]}'}}`, 1)
	permissions := "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: example.com, kind: Runner, permissions: [{path: .spec.template, include: podTemplate}]}\n"
	for name, documents := range map[string][]string{
		"key":              {runner(partial(withKey+", ", listed))},
		"annotation":       {annotated},
		"PermissionSchema": {runner(partial("", listed)), permissions},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFragments(t, documents...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for path, want := range map[string]string{
				".spec.template":                          "template",
				".spec.template.metadata.labels.a":        "templateLabel(prefix of labelKey)",
				".spec.template.spec.nodeName":            "nodeAssignment",
				".spec.template.spec.containers[*]":       "container(containerName)",
				".spec.template.spec.containers[*].image": "image(containerName)",
				".spec.template.spec.extra":               "",
			} {
				if got := verbsAt(t, s, gvk("example.com", "v1", "Runner"), path); got != want {
					t.Errorf("%s has %q, want %q", path, got, want)
				}
			}
		})
	}
}

// TestG5_TheAuthorsEntryWins over that of the fragment, and keeps what other entries of the fragment need.
func TestG5_TheAuthorsEntryWins(t *testing.T) {
	template := strings.NewReplacer(
		"nodeName: {type: string}", "nodeName: {type: string, x-kubernetes-permission-verb: example.com/node, x-kubernetes-permission-excluded: true}",
		"labels: {type: object,", "labels: {type: object, x-kubernetes-permission-verb: example.com/labels,",
	).Replace(partial(withKey+", x-kubernetes-permission-verb: example.com/run, ", listed))
	s, errs := compileFragments(t, runner(template))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for path, want := range map[string]string{
		".spec.template":                          "example.com/run",
		".spec.template.spec.nodeName":            "EXAMPLE.COM/NODE",
		".spec.template.metadata.labels":          "example.com/labels",
		".spec.template.metadata.labels.a":        "templateLabel(prefix of labelKey)",
		".spec.template.spec.containers[*].image": "image(containerName)",
	} {
		if got := verbsAt(t, s, gvk("example.com", "v1", "Runner"), path); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
}

// TestG5_IncludesThatDoNotFitAreRefused, at their place and with the cure.
func TestG5_IncludesThatDoNotFitAreRefused(t *testing.T) {
	const at = "d0.yaml:/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	for name, c := range map[string]struct{ definition, want string }{
		"a typo":            {runner(partial("x-kubernetes-permission-include: podTemplates, ")), at + `template: fragment "podTemplates" cannot be included: write podTemplate`},
		"no fragment":       {runner(partial("x-kubernetes-permission-include: budget, ")), "use one of conditions, jobSpec, podSpec, podTemplate, templateMetadata"},
		"own metadata":      {runner(partial("x-kubernetes-permission-include: metadata, ")), "write templateMetadata"},
		"a string":          {strings.Replace(runner(partial("")), "name: {type: string}}}}}}", "name: {type: string, "+withKey+"}}}}}}", 1), at + `name: ".spec.name": fragment "podTemplate" does not fit the field, which has none of .metadata, .spec: include it at the field that has them`},
		"one field too low": {runner("{type: object, properties: {spec: {type: object, " + withKey + ", properties: {nodeName: {type: string}}}}}"), "does not fit the field"},
		"the root":          {strings.Replace(runner(partial("")), "{openAPIV3Schema: {type: object,", "{openAPIV3Schema: {type: object, "+withKey+",", 1), "is included at the root of an object: include it at a field"},
		"atomic conditions": {strings.Replace(runner(partial("")), "name: {type: string}}}}}}", "name: {type: array, x-kubernetes-permission-include: conditions, items: {type: object, properties: {type: {type: string}}}}}}}}}", 1), `the list ".spec.name" is atomic and has no keys: give it x-kubernetes-list-type: map`},
		"no path": {runner(partial("")) + "---\napiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: example.com, kind: Runner, permissions: [{path: .spec.tmplate, include: podTemplate}]}\n",
			`d0.yaml#2:/spec/permissions/0: path ".spec.tmplate" does not exist in any version`},
		"no string": {runner(partial("x-kubernetes-permission-include: true, ")), "write a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := compileFragments(t, c.definition)
			if text := fmt.Sprint(errs); len(errs) != 1 || !strings.Contains(text, c.want) {
				t.Errorf("errors %q, want %q", text, c.want)
			}
		})
	}
}

// TestG5_AnAPIServerMayInclude in the vendor extensions of its OpenAPI document.
func TestG5_AnAPIServerMayInclude(t *testing.T) {
	const doc = `{"openapi":"3.0.0","components":{"schemas":{
"a.Run":{"type":"object","x-kubernetes-group-version-kind":[{"group":"a.example.com","version":"v1","kind":"Run"}],"properties":{
 "metadata":{"$ref":"#/components/schemas/a.ObjectMeta"},
 "spec":{"type":"object","properties":{"template":{"allOf":[{"$ref":"#/components/schemas/a.Template"}],"x-kubernetes-permission-include":"INCLUDE"}}}}},
"a.ObjectMeta":{"type":"object","properties":{"name":{"type":"string"}}},
"a.Template":{"type":"object","properties":{"spec":{"type":"object","properties":{"nodeName":{"type":"string"}}}}}}}}`
	topology, err := OpenAPIV3("api.json", []byte(strings.Replace(doc, "INCLUDE", "podTemplate", 1)))
	if err != nil {
		t.Fatal(err)
	}
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	more, _ := Decode("pod.yaml", []byte(fragmentSchema("podSpec", "{path: .nodeName, verb: nodeAssignment, excluded: true}")))
	catalogue, err := Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	s, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{builtIn, topology}, Permissions: catalogue}.Append(more))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got := verbsAt(t, s, gvk("a.example.com", "v1", "Run"), ".spec.template.spec.nodeName"); got != "NODEASSIGNMENT" {
		t.Errorf("the node has %q", got)
	}
	if _, err := OpenAPIV3("api.json", []byte(strings.Replace(doc, "INCLUDE", "podTemplat", 1))); err == nil || !strings.Contains(err.Error(), "write podTemplate") {
		t.Errorf("a typo: %v", err)
	}
}

func fieldPermission(path, include string) v1alpha1.FieldPermission {
	return v1alpha1.FieldPermission{Path: path, Include: include}
}

// many is a definition with a number of untyped fields, each of which includes a pod template in each of two versions.
func many(t testing.TB, fields int) []byte {
	t.Helper()
	properties, entries := map[string]any{}, []any{}
	for i := range fields {
		name := fmt.Sprintf("f%d", i)
		properties[name] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		entries = append(entries, map[string]any{"path": ".spec." + name, "include": "podTemplate"})
	}
	annotation, err := json.Marshal(map[string]any{"v1": entries, "v2": entries})
	if err != nil {
		t.Fatal(err)
	}
	version := func(name string, stored bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": stored, "schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
		}}}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "runners.example.com", "annotations": map[string]any{v1alpha1.PermissionVerbsAnnotation: string(annotation)}},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Runner", "plural": "runners", "singular": "runner"},
			"versions": []any{version("v1", true), version("v2", false)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestG5_ADocumentExpandsToABoundedNumberOfEntries: an include stands for hundreds of entries, and an author who may not have a definition
// stored has it compiled.
func TestG5_ADocumentExpandsToABoundedNumberOfEntries(t *testing.T) {
	one, errs := CRD("one", many(t, 1))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	each := len(one.Permissions[0].Entries) + 1 // The include itself.
	most := v1alpha1.MaxExpandedPermissions / each / 2
	largest, errs := CRD("largest", many(t, most))
	if len(errs) > 0 {
		t.Fatalf("%d includes of %d entries in two versions: %v", most, each, errs)
	}
	n := 0
	for _, p := range largest.Permissions {
		n += len(p.Entries)
	}
	if n > v1alpha1.MaxExpandedPermissions || n < v1alpha1.MaxExpandedPermissions*9/10 {
		t.Errorf("%d entries", n)
	}
	const want = "the document has more than 20000 entries, with those that its includes stand for: include fragments at fewer fields, or divide"
	for fields, expanded := range map[int]int{most + 1: 1, 10 * most: 1} {
		docs, errs := CRD("more", many(t, fields))
		if len(errs) != expanded || !strings.Contains(errs[0].Error(), want) || len(docs.Permissions) > 0 {
			t.Errorf("%d includes: %v", fields, errs)
		}
	}
	permissions := make([]v1alpha1.FieldPermission, 0, 2*most+2)
	for i := range cap(permissions) {
		permissions = append(permissions, v1alpha1.FieldPermission{Path: fmt.Sprintf(".spec.f%d", i), Include: "podTemplate"})
	}
	object := &v1alpha1.PermissionSchema{Spec: v1alpha1.PermissionSchemaSpec{Group: "example.com", Kind: "Runner", Permissions: permissions}}
	if _, errs := PermissionSchema("schema", object); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
		t.Errorf("a PermissionSchema: %v", errs)
	}
}

// BenchmarkG5_LargestDocument compiles the largest document with the built-in kinds.
func BenchmarkG5_LargestDocument(b *testing.B) {
	topology, err := BuiltIn()
	if err != nil {
		b.Fatal(err)
	}
	catalogue, err := Catalogue(false)
	if err != nil {
		b.Fatal(err)
	}
	for _, fields := range []int{1, 31} {
		b.Run(fmt.Sprint(fields), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				docs, errs := CRD("runners", many(b, fields))
				if len(errs) > 0 {
					b.Fatal(errs)
				}
				all := compile.Documents{Topologies: []compile.Topology{topology}, Permissions: catalogue}.Append(docs)
				if _, errs := compile.Compile(all); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

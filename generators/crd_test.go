package generators

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/load"
)

func crd(t *testing.T, source string, raw []byte) []byte {
	t.Helper()
	out, errs := CRD(source, raw)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return out
}

func TestCRDGolden(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join("testdata", "crd", "in"))
	if err != nil {
		t.Fatal(err)
	}
	var files []File
	for _, entry := range entries {
		name := entry.Name()
		out := crd(t, name, read(t, filepath.Join("crd", "in", name)))
		files = append(files, File{Name: strings.TrimSuffix(name, filepath.Ext(name)) + ".yaml", Data: out})

		if again := crd(t, name, out); !bytes.Equal(out, again) {
			t.Errorf("%s is not idempotent; the second run gives\n%s", name, again)
		}
		// An API server of version 1.37 refuses or drops fields that its own type does not have.
		if err := yaml.UnmarshalStrict(out, &apiextensionsv1.CustomResourceDefinition{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if inline, errs := load.InlinePermissions(out); len(inline) > 0 || len(errs) > 0 {
			t.Errorf("%s: keys are left: %v %v", name, inline, errs)
		}
	}
	golden(t, filepath.Join("testdata", "crd", "out"), files)
}

// definitionYAML is a definition with two served versions to vary.
func definitionYAML(annotation, v1, v2 string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  annotations: %s
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, tags: {type: object, additionalProperties: {type: string}}, %s}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, %s}}}}}
`, annotation, v1, v2)
}

// TestF10_AFieldOfOneVersion has a verb that no other version needs.
func TestF10_AFieldOfOneVersion(t *testing.T) {
	const guarded = `a: {type: string, x-kubernetes-permission-verb: example.com/a}`
	for name, raw := range map[string][]byte{
		"the field is in v1 only": definitionYAML("{}", guarded, ""),
		"the field has moved":     definitionYAML("{}", guarded, "b: {type: string, x-kubernetes-permission-verb: example.com/a}"),
	} {
		if _, errs := CRD("f.yaml", raw); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// TestC2_TheAnnotationNamesEveryServedVersion: with a barrier in one version, an API server with fieldperm refuses an annotation that says
// nothing of another one.
func TestC2_TheAnnotationNamesEveryServedVersion(t *testing.T) {
	const barrier = `a: {type: string, x-kubernetes-permission-verb: example.com/a, x-kubernetes-permission-excluded: true}`
	converted, errs := Convert("f.yaml", definitionYAML("{}", barrier, ""))
	if want := `{"v1":[{"path":".spec.a","verb":"example.com/a","excluded":true}],"v2":[]}`; len(errs) > 0 || converted.Annotation != want {
		t.Fatalf("the annotation is %s, want %s: %v", converted.Annotation, want, errs)
	}
	if _, errs := load.Decode("f.yaml", converted.CRD.Data); len(errs) > 0 {
		t.Error(errs)
	}
	if again := crd(t, "f.yaml", converted.CRD.Data); !bytes.Equal(again, converted.CRD.Data) {
		t.Errorf("the second run gives\n%s", again)
	}
}

// TestConvert_WhatExceedsTheLimit: the file of the permissions stands for the whole annotation, what was in it before included.
func TestConvert_WhatExceedsTheLimit(t *testing.T) {
	var properties strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&properties, "field%d: {type: string, x-kubernetes-permission-verb: example.com/aVerbWithALongName}, ", i)
	}
	raw := definitionYAML(`{fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"size"}],"v2":[{"path":".spec.size","verb":"size"}]}'}`, properties.String(), properties.String())
	converted, errs := Convert("f.yaml", raw)
	if len(errs) > 0 || converted.Permissions == nil || bytes.Contains(converted.CRD.Data, []byte("permission-verbs")) {
		t.Fatalf("permissions %v, errors %v, definition %.300s", converted.Permissions != nil, errs, converted.CRD.Data)
	}
	docs, errs := load.Decode("f.yaml", converted.Permissions.Data)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	paths := 0
	for _, d := range docs.Permissions {
		if len(d.Versions) != 2 || len(d.Entries) > maxEntries {
			t.Errorf("a PermissionSchema for %v has %d entries", d.Versions, len(d.Entries))
		}
		paths += len(d.Entries)
	}
	if paths != 3001 || !strings.Contains(converted.Warning(), converted.Permissions.Name) {
		t.Errorf("%d entries, the warning is %q", paths, converted.Warning())
	}
}

func TestCRDBadInput(t *testing.T) {
	const good = `a: {type: string, x-kubernetes-permission-verb: example.com/a}`
	annotation := func(json string) []byte {
		return definitionYAML(fmt.Sprintf("{fieldperm.dev/permission-verbs: %q}", json), good, good)
	}
	if _, errs := CRD("good.yaml", definitionYAML("{}", good, good)); len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":                       {nil, "f.yaml:: is empty"},
		"comment only":                {[]byte("# nothing\n"), "f.yaml:: is empty"},
		"no YAML":                     {[]byte("a: [b"), "f.yaml:: is no YAML or JSON"},
		"no JSON":                     {[]byte(`{"a": `), "f.yaml:: is no YAML or JSON"},
		"invalid UTF-8":               {[]byte("a: \xff"), "f.yaml:: is no YAML or JSON"},
		"list":                        {[]byte("- a"), "f.yaml:: is no object"},
		"scalar":                      {[]byte("a"), "f.yaml:: is no object"},
		"twice the same key":          {append(definitionYAML("{}", good, good), "kind: X\n"...), "already set in map"},
		"two documents":               {append(definitionYAML("{}", good, good), "---\na: b\n"...), "holds more than one document"},
		"another kind":                {[]byte("apiVersion: v1\nkind: Pod\n"), "is no CustomResourceDefinition"},
		"v1beta1":                     {[]byte("apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n"), "convert it to that version"},
		"no versions":                 {[]byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a.b, names: {kind: A, plural: as}}\n"), "/spec/versions"},
		"bad verb":                    {definitionYAML("{}", `a: {type: string, x-kubernetes-permission-verb: "no verb"}`, ""), `/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a: "`},
		"unknown key":                 {definitionYAML("{}", `a: {type: string, x-kubernetes-permission-verbs: a}`, good), "x-kubernetes-permission-verbs"},
		"no parameter":                {definitionYAML("{}", `a: {type: string, x-kubernetes-permission-verb: example.com/a, x-kubernetes-permission-parameterized-by: x}`, good), `emits parameter "x"`},
		"CEL":                         {definitionYAML("{}", `a: {type: string, x-kubernetes-permission-verb: example.com/a, x-kubernetes-permission-excluded-when: self ==}`, good), "does not compile"},
		"keys in allOf":               {definitionYAML("{}", `a: {type: string, allOf: [{x-kubernetes-permission-verb: example.com/a}]}`, good), "allOf"},
		"§4 version lacks":            {definitionYAML("{}", good, "a: {type: string}"), `f.yaml:/spec/versions/1: path ".spec.a" of served version "v2" lacks verb "example.com/a", which version "v1" has`},
		"§4 version differs":          {definitionYAML("{}", good, `a: {type: string, x-kubernetes-permission-verb: example.com/b}`), `path ".spec.a" of served version "v2" lacks verb "example.com/a", which version "v1" has`},
		"annotation: no JSON":         {annotation("[}"), "/metadata/annotations/fieldperm.dev~1permission-verbs"},
		"annotation: list":            {annotation("[]"), "/metadata/annotations/fieldperm.dev~1permission-verbs"},
		"annotation: unknown key":     {annotation(`{"v1":[{"path":".spec.size","verbs":"size"}]}`), "/metadata/annotations/fieldperm.dev~1permission-verbs"},
		"annotation: unknown version": {annotation(`{"v3":[]}`), `version "v3" does not exist`},
		"annotation: unknown path":    {annotation(`{"v1":[{"path":".spec.none","verb":"size"}],"v2":[{"path":".spec.size","verb":"size"}]}`), `path ".spec.none" does not exist`},
		"annotation: path twice":      {annotation(`{"v1":[{"path":".spec.size","verb":"a"},{"path":".spec[\"size\"]","verb":"b"}]}`), "stands twice"},
		"annotation: bad path":        {annotation(`{"v1":[{"path":"spec","verb":"a"}]}`), `path "spec"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := CRD("f.yaml", c.raw)
			var text strings.Builder
			for _, err := range errs {
				if !strings.HasPrefix(err.Error(), "f.yaml:") {
					t.Errorf("error names no source: %v", err)
				}
				fmt.Fprintln(&text, err)
			}
			if !strings.Contains(text.String(), c.want) {
				t.Errorf("errors are %q, want %q", text.String(), c.want)
			}
			if out != nil {
				t.Error("a result in spite of the errors")
			}
		})
	}
}

func TestCRDAnnotationLimit(t *testing.T) {
	var properties strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&properties, "field%d: {type: string, x-kubernetes-permission-verb: example.com/aVerbWithALongName}, ", i)
	}
	_, errs := CRD("f.yaml", definitionYAML("{}", properties.String(), properties.String()))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "f.yaml:/metadata/annotations: ") || !strings.Contains(errs[0].Error(), "262144") {
		t.Errorf("errors are %v, want one about 256 KiB", errs)
	}
}

func TestCRDInlineWinsOverAnnotation(t *testing.T) {
	same := `size: {type: integer, x-kubernetes-permission-verb: size}`
	raw := bytes.ReplaceAll(definitionYAML("{}", "", ""), []byte("size: {type: integer}"), []byte(same))
	raw = bytes.Replace(raw, []byte("annotations: {}"), []byte(`annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"no verb"}]}'}`), 1)
	var out apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(crd(t, "f.yaml", raw), &out); err != nil {
		t.Fatal(err)
	}
	const want = `{"v1":[{"path":".spec.size","verb":"size"}],"v2":[{"path":".spec.size","verb":"size"}]}`
	if got := out.Annotations[v1alpha1.PermissionVerbsAnnotation]; got != want {
		t.Errorf("annotation is %s, want %s", got, want)
	}
}

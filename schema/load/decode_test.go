package load

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// wantFaults checks that every error has a position, and that each wanted "source:pointer: message" is among the errors. A wanted text is
// the beginning and a part of the rest.
func wantFaults(t *testing.T, errs []error, begins string, contains ...string) {
	t.Helper()
	if len(errs) == 0 {
		t.Fatalf("no error; want %q", begins)
	}
	for _, err := range errs {
		if _, ok := err.(*schema.Error); !ok {
			t.Errorf("%v: is a %T", err, err)
		}
	}
	for _, err := range errs {
		if !strings.HasPrefix(err.Error(), begins) {
			continue
		}
		for _, part := range contains {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q lacks %q", err, part)
			}
		}
		return
	}
	t.Errorf("errors %q: none begins with %q", errs, begins)
}

const deploymentHead = `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: x}
spec:
  group: apps
  kind: Deployment
  permissions:
`

func TestDecode_Refuses(t *testing.T) {
	for name, test := range map[string]struct {
		text     string
		begins   string
		contains []string
	}{
		"unknown key": {
			deploymentHead + "  - {path: .spec.paused, vreb: pause}\n",
			"f.yaml:/spec/permissions/0/vreb: ", []string{`unknown field`, "correct it or leave it out"},
		},
		"key twice": {
			deploymentHead + "  - path: .spec.paused\n    verb: a\n    verb: b\n",
			"f.yaml:10: ", []string{`key "verb" already set in map`, "keep one of them"},
		},
		"key twice in the second document": {
			"kind: List\napiVersion: v1\n---\na: 1\na: 2\n",
			"f.yaml#2:5: ", []string{`key "a" already set in map`},
		},
		"key twice in JSON": {
			`{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionSchema","spec":{"kind":"A","kind":"B","permissions":[]}}`,
			"f.yaml:/spec/kind: ", []string{"duplicate field", "keep one of them"},
		},
		"YAML syntax":                      {"kind: [\n", "f.yaml:", []string{"no YAML or JSON", "correct the syntax"}},
		"JSON syntax":                      {"{\n\"a\": 1,\n}", "f.yaml:3: ", []string{"no YAML or JSON"}},
		"not UTF-8":                        {"kind: \xff\n", "f.yaml:: ", []string{"is not UTF-8: correct its encoding"}},
		"not UTF-8 in JSON":                {`{"kind":"` + "\xff" + `"}`, "f.yaml:: ", []string{"is not UTF-8: correct its encoding"}},
		"text after the end of a document": {"{a: 1} {b: 2}\n", "f.yaml:1: ", []string{"no YAML or JSON"}},
		"key twice in JSON between dashes": {
			"---\n" + `{"kind":"A",` + "\n" + `"kind":"B"}`, "f.yaml:3: ", []string{`key "kind" already set in map`, "keep one of them"},
		},
		"wrong type": {deploymentHead + "  - {path: 3}\n", "f.yaml:", []string{"cannot unmarshal number", "correct the value"}},
		"other kind": {
			"apiVersion: apps/v1\nkind: Deployment\n", "f.yaml:/kind: ",
			[]string{`kind "Deployment" of "apps/v1" is not accepted`, "PermissionSchema", "UncoveredPermissionSet", "CustomResourceDefinition"},
		},
		"a policy": {
			"apiVersion: fieldperm.dev/v1alpha1\nkind: ConditionalPolicy\n", "f.yaml:/kind: ",
			[]string{`kind "ConditionalPolicy" of "fieldperm.dev/v1alpha1" is not accepted: apply it to the cluster`, "--policies"},
		},
		"other version": {"apiVersion: fieldperm.dev/v1\nkind: PermissionSchema\n", "f.yaml:/kind: ", []string{`"fieldperm.dev/v1"`}},
		"no kind":       {"a: 1\n", "f.yaml:/kind: ", []string{`kind ""`}},
		"no object":     {"- 1\n", "f.yaml:: ", []string{"no object"}},
		"in a list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n", "f.yaml/items/0:/kind: ", []string{`kind "Pod"`},
		},
		"every kind":     {strings.Replace(deploymentHead, "Deployment", `"*"`, 1) + "  - {path: .spec, verb: a}\n", "f.yaml:/spec/kind: ", []string{"name one kind"}},
		"every group":    {strings.Replace(deploymentHead, "apps", `"*"`, 1) + "  - {path: .spec, verb: a}\n", "f.yaml:/spec/group: ", []string{"name one group"}},
		"no permissions": {strings.TrimSuffix(deploymentHead, "  permissions:\n"), "f.yaml:/spec/permissions: ", []string{"is empty"}},
		"unknown key of a set": {
			"apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nspec: {uncoveredPermissions: [], when: x}\n",
			"f.yaml:/spec/when: ", []string{"unknown field"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			docs, errs := Decode("f.yaml", []byte(test.text))
			wantFaults(t, errs, test.begins, test.contains...)
			if len(docs.Permissions)+len(docs.Topologies)+len(docs.Uncovered) > 0 {
				t.Errorf("documents %v: a faulty one came through", docs)
			}
		})
	}
}

// The compiler's errors name the file and the place as well.
func TestDecode_ThenCompileRefuses(t *testing.T) {
	builtins, errs := builtInDocuments()
	noErrors(t, errs)
	for name, test := range map[string]struct {
		entries  string
		begins   string
		contains []string
	}{
		"bad verb":          {"  - {path: .spec.paused, verb: Pause}\n", "f.yaml:/spec/permissions/0: ", []string{`"Pause"`, "lowerCamelCase"}},
		"unknown path":      {"  - {path: .spec.replica, verb: pause}\n", "f.yaml:/spec/permissions/0: ", []string{`".spec.replica" does not exist`, "replicas"}},
		"no path":           {"  - {path: spec, verb: pause}\n", "f.yaml:/spec/permissions/0: ", []string{`path "spec"`}},
		"unknown parameter": {"  - {path: .spec.paused, verb: pause, parameterizedBy: colour}\n", "f.yaml:/spec/permissions/0: ", []string{`nothing on the path emits parameter "colour"`}},
		"unknown treatment": {
			"  - {path: '.metadata.labels[*]', verb: label, parameterizedBy: labelKey, parameterTreatment: upper}\n",
			"f.yaml:/spec/permissions/0: ", []string{`"upper" is unknown`},
		},
		"CEL does not compile": {"  - {path: .spec.paused, verb: pause, excludedWhen: self ==}\n", "f.yaml:/spec/permissions/0: ", []string{`"self ==" does not compile`}},
		"CEL of another type":  {"  - {path: .spec.paused, verb: pause, excludedWhen: '\"a\"'}\n", "f.yaml:/spec/permissions/0: ", []string{"make it yield bool"}},
		"path twice": {
			"  - {path: .spec.paused, verb: pause}\n  - {path: '[\"spec\"].paused', verb: stop}\n",
			"f.yaml:/spec/permissions/1: ", []string{"stands twice", "/spec/permissions/0"},
		},
		"root": {"  - {path: '', verb: all}\n", "f.yaml:/spec/permissions/0: ", []string{"granular:*"}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, errs := Decode("f.yaml", []byte(deploymentHead+test.entries))
			noErrors(t, errs)
			compiled, errs := compile.Compile(builtins.Append(docs))
			wantFaults(t, errs, test.begins, test.contains...)
			if _, err := compiled.Kind(gvk("apps", "v1", "Deployment")); err == nil {
				t.Error("the kind compiled in spite of the fault")
			}
			if _, err := compiled.Kind(gvk("", "v1", "Pod")); err != nil {
				t.Errorf("another kind suffers: %v", err)
			}
		})
	}
}

func TestDecode_List(t *testing.T) {
	item := `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionSchema","spec":{"kind":"Pod","permissions":[{"path":".spec","verb":"a"}]}}`
	docs, errs := Decode("f.json", []byte(`{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[`+item+`]}`+item))
	noErrors(t, errs)
	if len(docs.Permissions) != 2 || docs.Permissions[0].Source != "f.json#1/items/0" || docs.Permissions[1].Source != "f.json#2" {
		t.Errorf("documents %+v", docs.Permissions)
	}
}

func TestDecode_EmptyDocuments(t *testing.T) {
	docs, errs := Decode("f.yaml", []byte("---\n# nothing\n--- # nor here\n\n"+deploymentHead+"  - {path: .spec.paused, verb: a}\n---\n"))
	noErrors(t, errs)
	if len(docs.Permissions) != 1 || docs.Permissions[0].Source != "f.yaml" || docs.Permissions[0].Rank != compile.RankAdministrator {
		t.Errorf("documents %+v", docs.Permissions)
	}
}

// Decode returns for any bytes, and its errors have positions.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(deploymentHead + "  - {path: .spec.paused, verb: a}\n"))
	f.Add([]byte("a: 1\n---\na: [\n"))
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"group":"a","names":{"kind":"A","plural":"as"},"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"items":null,"type":"array"}}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, errs := Decode("f", raw)
		for _, err := range errs {
			if _, ok := err.(*schema.Error); !ok {
				t.Errorf("%v: is a %T", err, err)
			}
		}
	})
}

package fieldrole

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldperm/fieldperm/test/schematest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// widgets is a kind with everything: barriers, a scale with another path, a version without a status, and fields without a verb.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  annotations:
    fieldperm.dev/permission-verbs: |
      {"v1": [{"path": ".spec.size", "verb": "example.com/size"}, {"path": ".spec.safe", "verb": "example.com/safe"},
              {"path": ".spec.safe.danger", "verb": "example.com/danger", "excluded": true},
              {"path": ".spec.safe.danger.inner", "verb": "example.com/inner"},
              {"path": ".spec.limit", "verb": "example.com/limit", "excludedWhen": "self > 5"},
              {"path": ".spec.tags", "verb": "example.com/tags", "parameterSource": "tag"},
              {"path": ".spec.tags[*]", "verb": "example.com/tag", "parameterizedBy": "tag"},
              {"path": ".spec.parts[*].count", "verb": "example.com/size"}]}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}, schema: {openAPIV3Schema: {type: object, properties: {
      settings: {type: object, properties: {color: {type: string}}},
      spec: {type: object, properties: {size: {type: integer}, limit: {type: integer}, color: {type: string}, tags: {type: object, additionalProperties: {type: string}},
        safe: {type: object, properties: {ok: {type: string}, danger: {type: object, properties: {inner: {type: string}, outer: {type: string}}}}},
        parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}}}},
      status: {type: object, properties: {size: {type: integer}}}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: plains.example.com}
spec:
  group: example.com
  names: {kind: Plain, plural: plains}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer}}}, status: {type: object, properties: {size: {type: integer}}}}}}}
`

// kinds are the built-in kinds and the widgets.
func kinds(t *testing.T) *Kinds {
	t.Helper()
	return New(schematest.Traced(t, widgets+gadgets), schematest.Documents(t, widgets+gadgets))
}

func target(t *testing.T, text string) *Target {
	t.Helper()
	out, err := kinds(t).Find(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs:\n%s", file, got)
	}
}

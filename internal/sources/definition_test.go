package sources

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestDefinition_KeepsTheInputOfTheCompiler(t *testing.T) {
	parse := func(text string) map[string]any {
		out := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const kept = `
metadata: {name: gadgets.example.com, annotations: {description: kept}}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          description: {type: string, default: "description: kept"}
          list: {type: array, items: {type: object, default: {description: kept}, properties: {a: {anyOf: [{type: string}]}}}}
          map: {type: object, additionalProperties: {type: string, enum: [description]}}
  - {name: v2}
`
	got := parse(`
metadata: {name: gadgets.example.com, annotations: {description: kept}, managedFields: [{manager: a}]}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: dropped
        type: object
        properties:
          description: {type: string, default: "description: kept", description: dropped}
          list: {type: array, description: dropped, items: {description: dropped, type: object, default: {description: kept}, properties: {a: {anyOf: [{type: string, description: dropped}]}}}}
          map: {type: object, additionalProperties: {type: string, description: dropped, enum: [description]}}
  - {name: v2}
`)
	d, err := NewDefinition(&unstructured.Unstructured{Object: got})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := d.Whole()
	if err != nil {
		t.Fatal(err)
	}
	if want := parse(kept); !reflect.DeepEqual(whole.Object, want) {
		t.Errorf("got  %v\nwant %v", whole.Object, want)
	}
}

// TestDefinition_ACopyHasTheSchemas: informers may copy their objects.
func TestDefinition_ACopyHasTheSchemas(t *testing.T) {
	d, err := NewDefinition(widget("1", 1, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	copied, ok := d.DeepCopyObject().(*Definition)
	if !ok || !d.sameSpecification(copied) || copied.Unstructured == d.Unstructured || !strings.Contains(copied.schemas, "openAPIV3Schema") {
		t.Errorf("copied as %T: %v", d.DeepCopyObject(), copied)
	}
	if text, err := json.Marshal(d); err == nil {
		t.Errorf("encoded without its schemas: %s", text)
	}
}

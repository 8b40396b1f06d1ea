package openapi

import (
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

const document = `{"components": {"schemas": {
  "v1.Widget": {
    "type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Widget"}],
    "properties": {
      "spec": {"default": {}, "allOf": [{"$ref": "#/components/schemas/v1.Spec"}]},
      "labels": {"type": "object", "additionalProperties": {"type": "string"}},
      "free": {"type": "object", "additionalProperties": true},
      "lost": {"$ref": "#/components/schemas/v1.Nowhere"}
    }
  },
  "v1.Spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}},
  "v1.Options": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Options"}, {"group": "", "version": "v1", "kind": "Options"}]}
}}}`

func TestDocument(t *testing.T) {
	d, err := Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	gv := runtimeschema.GroupVersion{Group: "example.com", Version: "v1"}
	widget := d.Kind(gv.WithKind("Widget"))
	if widget == nil || widget.Name != "v1.Widget" {
		t.Fatalf("Widget is %+v", widget)
	}
	if d.Kind(gv.WithKind("Options")) != nil || d.Kind(gv.WithKind("Spec")) != nil {
		t.Error("options of requests, or other types, count as a kind")
	}
	if spec := d.Resolve(widget.Properties["spec"]); spec.Name != "v1.Spec" || spec.Properties["size"].Type != "integer" || spec.Required[0] != "size" {
		t.Errorf("spec is %+v", spec)
	}
	if v := widget.Properties["labels"].Values; v == nil || v.Type != "string" {
		t.Errorf("labels have values of %+v", v)
	}
	if widget.Properties["free"].Values != nil {
		t.Error("a map of anything has a type of its values")
	}
	if lost := d.Resolve(widget.Properties["lost"]); lost == nil || lost.Type != "" {
		t.Errorf("a lost reference is %+v", lost)
	}
	if _, err := Parse([]byte("nothing")); err == nil {
		t.Error("a text that is no document is read")
	}
	if got := Path(gv) + Path(runtimeschema.GroupVersion{Version: "v1"}); got != "/openapi/v3/apis/example.com/v1/openapi/v3/api/v1" {
		t.Error(got)
	}
}

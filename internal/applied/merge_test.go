package applied

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

var merger = &Merger{Kind: runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, Status: true}

const live = `
apiVersion: example.com/v1
kind: Widget
metadata:
  name: w
  managedFields:
  - {manager: controller, operation: Update, apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:size": {}}}}
  - {manager: kubectl, operation: Apply, apiVersion: example.com/v1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:color": {}}}}
  - {manager: old, operation: Update, apiVersion: example.com/v1beta1, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:mode": {}}}}
spec: {size: 1, color: red, mode: fast}
status: {size: 1}
`

func spec(t *testing.T, r *Result) string {
	t.Helper()
	out, err := json.Marshal(r.Object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// owners returns the managers of an object with their fields.
func owners(r *Result) string {
	var out []string
	for _, e := range r.Object.GetManagedFields() {
		out = append(out, e.Manager+" "+string(e.Operation)+" "+e.APIVersion+" "+e.FieldsV1.GetRawString())
	}
	return strings.Join(out, "\n")
}

func TestApply(t *testing.T) {
	got, err := merger.Apply(object(t, live), object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {shape: round}, status: {size: 7}}`), "kubectl", false)
	if err != nil {
		t.Fatal(err)
	}
	if s := spec(t, got); s != `{"mode":"fast","shape":"round","size":1}` {
		t.Errorf("spec %s: the field of an earlier apply goes, and those of others stay", s)
	}
	if status, _ := json.Marshal(got.Object.Object["status"]); string(status) != `{"size":1}` {
		t.Errorf("status %s: is not of a write of the object", status)
	}
	text := owners(got)
	for _, want := range []string{
		`controller Update example.com/v1 {"f:spec":{"f:size":{}}}`, `old Update example.com/v1beta1 {"f:spec":{"f:mode":{}}}`, `kubectl Apply example.com/v1 {"f:spec":{".":{},"f:shape":{}}}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("owners\n%s\nwant %s", text, want)
		}
	}
	if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, "each list counts as one field") || !strings.Contains(notes, "other versions") {
		t.Errorf("notes %q", notes)
	}
}

func TestApplyConflictsAndForce(t *testing.T) {
	configuration := object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 2, color: red}}`)
	if _, err := merger.Apply(object(t, live), configuration, "kubectl", false); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict with the controller", err)
	}
	got, err := merger.Apply(object(t, live), configuration, "kubectl", true)
	if err != nil {
		t.Fatal(err)
	}
	if text := owners(got); spec(t, got) != `{"color":"red","mode":"fast","size":2}` || strings.Contains(text, "controller") {
		t.Errorf("spec %s, owners\n%s\nwant the field of the controller taken over", spec(t, got), text)
	}
}

func TestUpdateKeepsTheStatusAndOwnsWhatItChanges(t *testing.T) {
	wanted := object(t, live)
	if err := unstructured.SetNestedField(wanted.Object, int64(5), "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(wanted.Object, int64(5), "status", "size"); err != nil {
		t.Fatal(err)
	}
	got, err := merger.Update(object(t, live), wanted, "edit")
	if err != nil {
		t.Fatal(err)
	}
	status, _ := json.Marshal(got.Object.Object["status"])
	if text := owners(got); spec(t, got) != `{"color":"red","mode":"fast","size":5}` || string(status) != `{"size":1}` || !strings.Contains(text, `edit Update example.com/v1 {"f:spec":{"f:size":{}}}`) || strings.Contains(text, "controller") {
		t.Errorf("spec %s, status %s, owners\n%s", spec(t, got), status, text)
	}
}

func TestApplyCreates(t *testing.T) {
	got, err := merger.Apply(nil, object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}, status: {size: 1}}`), "kubectl", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.Object.Object["status"]; ok || spec(t, got) != `{"size":1}` || owners(got) != `kubectl Apply example.com/v1 {"f:spec":{".":{},"f:size":{}}}` {
		t.Errorf("got %v, owners %s", got.Object.Object, owners(got))
	}
}

func TestPruneNulls(t *testing.T) {
	value := map[string]any{"a": nil, "b": map[string]any{"c": nil, "d": int64(1)}, "e": []any{map[string]any{"f": nil}}}
	PruneNulls(value)
	if out, _ := json.Marshal(value); string(out) != `{"b":{"d":1},"e":[{}]}` {
		t.Errorf("got %s", out)
	}
}

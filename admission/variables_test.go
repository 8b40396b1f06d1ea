package admission

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestK4_ConditionsSeeThatAScaleIsZero: API servers leave the replicas of a Scale out if they are 0.
func TestK4_ConditionsSeeThatAScaleIsZero(t *testing.T) {
	zero := map[string]any{"spec": map[string]any{"replicas": int64(0)}}
	for _, c := range []struct {
		group, resource, object string
		want, old               any
	}{
		{"apps", "deployments", `{}`, zero, zero},
		{"apps", "deployments", `{"spec":{}}`, zero, zero},
		{"apps", "deployments", `{"spec":{"replicas":3}}`, map[string]any{"spec": map[string]any{"replicas": int64(3)}}, zero},
		{"example.com", "widgets", `{"spec":{}}`, zero, map[string]any{"spec": map[string]any{}}},
	} {
		req := &admissionv1.AdmissionRequest{
			Kind:     metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
			Resource: metav1.GroupVersionResource{Group: c.group, Resource: c.resource},
		}
		req.Object.Raw, req.OldObject.Raw = []byte(c.object), []byte(`{"spec":{}}`)
		got, err := objectsOf(&schema.Kind{}, req).read()
		if err != nil || !reflect.DeepEqual(got.object, c.want) || !reflect.DeepEqual(got.old, c.old) {
			t.Errorf("%s: %v, %v; want %v after %v", c.object, got, err, c.want, c.old)
		}
	}
}

func TestC2_K4_ConditionsReadTheRequestByTheNamesOfTheAPI(t *testing.T) {
	dry := true
	req := &admissionv1.AdmissionRequest{Namespace: "shop", DryRun: &dry, Operation: admissionv1.Update}
	req.UserInfo.Username = "alice"
	req.Object.Raw = []byte(`{"kind":"Deployment","spec":{"replicas":2}}`)
	reader := objectsOf(&schema.Kind{}, req)
	fields, err := reader.fields()
	if err != nil {
		t.Fatal(err)
	}
	got, err := reader.read()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"namespace": "shop", "dryRun": true, "operation": "UPDATE", "object": nil, "oldObject": nil} {
		if fields[name] != want {
			t.Errorf("request.%s is %v, want %v", name, fields[name], want)
		}
	}
	if user, _ := fields["userInfo"].(map[string]any); user["username"] != "alice" {
		t.Errorf("request.userInfo is %v", user)
	}
	if spec, _ := got.object.(map[string]any)["spec"].(map[string]any); spec["replicas"] != int64(2) || got.old != nil {
		t.Errorf("object %v, oldObject %v", got.object, got.old)
	}
	req.OldObject.Raw = []byte(`{"kind":`)
	if got, err := objectsOf(&schema.Kind{}, req).read(); err == nil {
		t.Errorf("an object that is no JSON is read as %v", got)
	}
}

// gadgets is a definition with an embedded resource, which keeps unknown fields in its specification, and not in the policy there.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".metadata.labels[\"tier\"]","verb":"example.com/tier","excludedWhen":"self == \"gold\""}]}'}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              policy: {type: object, properties: {limit: {type: string}}}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
`

// gadget is a request that changes a Gadget. The two texts are parts of its metadata and its specification, with | between them.
func gadget(before, after string) *admissionv1.AdmissionRequest {
	req := scaling()
	req.Kind = metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	req.Resource = metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	object := func(text string) []byte {
		metadata, spec, _ := strings.Cut(text, "|")
		return []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"n","managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","time":"2026-11-23T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]` + metadata + `},"spec":` + spec + `}`)
	}
	req.OldObject.Raw, req.Object.Raw = object(before), object(after)
	return req
}

// K4: server-side apply shows null and empty fields in a review, and fields that the API server prunes later. Conditions read the object as
// readers get it, or not at all.
func TestK4_ACustomResourceIsReadAsReadersDo(t *testing.T) {
	s := schematest.Schema(t, gadgets)
	kind, err := s.Kind(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{
		`|{"size":2}`:                             "managedFields name namespace",
		`,"labels":{"a":"b"}|{"size":2}`:          "labels managedFields name namespace",
		`,"labels":null|{"size":2}`:               "managedFields name namespace",
		`,"labels":{}|{"size":2}`:                 "managedFields name namespace",
		`,"annotations":null|{"size":2}`:          "managedFields name namespace",
		`,"ownerReferences":[]|{"size":2}`:        "managedFields name namespace",
		`,"finalizers":[]|{"size":2}`:             "managedFields name namespace",
		`,"generateName":""|{"size":2}`:           "managedFields name namespace",
		`,"creationTimestamp":null|{"size":2}`:    "managedFields name namespace",
		`|{"policy":{"limit":"a"},"own":{"x":1}}`: "managedFields name namespace",
		`|{"policy":{"limit":"a","own":{"x":1}}}`: "",
	} {
		got, err := objectsOf(kind, gadget(`|{"size":1}`, after)).read()
		names := ""
		if object, _ := got.object.(map[string]any); object != nil {
			names = strings.Join(slices.Sorted(maps.Keys(object["metadata"].(map[string]any))), " ")
		}
		if names != want || (err != nil) != (want == "") {
			t.Errorf("%s: metadata has %q, %v; want %q", after, names, err, want)
		}
	}
}

// C2: a condition at a scalar reads it as the review shows it. A null counts as true: readers get no field, or an empty text.
func TestC2_AConditionAtALabelOfACustomResource(t *testing.T) {
	s := schematest.Schema(t, gadgets)
	for after, want := range map[string]bool{
		`,"labels":{"tier":"iron"}|{}`:                           true,
		`,"labels":{"tier":"gold"}|{}`:                           false,
		`,"labels":{"tier":null}|{}`:                             false,
		`,"labels":{}|{}`:                                        true,
		`,"labels":null|{}`:                                      true,
		`,"labels":{"tier":"iron"},"creationTimestamp":null|{}`:  true,
		`,"labels":{"tier":"iron"}|{"policy":{"own":{"x":"y"}}}`: true,
	} {
		result, err := reviewer(s, holding("update")).Review(t.Context(), Granular, gadget(`,"labels":{"tier":"wood"}|{}`, after))
		if err != nil || result.Allowed != want {
			t.Errorf("%s: %+v, %v; want %t", after, result, err, want)
		}
	}
}

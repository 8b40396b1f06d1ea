package admission

import (
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestC2_ConditionsSeeThatAScaleIsZero: API servers leave the replicas of a Scale out if they are 0.
func TestC2_ConditionsSeeThatAScaleIsZero(t *testing.T) {
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
		object, old, err := objectsOf(&schema.Kind{}, req).objects()
		if err != nil || !reflect.DeepEqual(object, c.want) || !reflect.DeepEqual(old, c.old) {
			t.Errorf("%s: %v after %v, %v; want %v after %v", c.object, object, old, err, c.want, c.old)
		}
	}
}

func TestC2_ConditionsReadTheRequestByTheNamesOfTheAPI(t *testing.T) {
	dry := true
	req := &admissionv1.AdmissionRequest{Namespace: "shop", DryRun: &dry, Operation: admissionv1.Update}
	req.UserInfo.Username = "alice"
	req.Object.Raw = []byte(`{"kind":"Deployment","spec":{"replicas":2}}`)
	reader := objectsOf(&schema.Kind{}, req)
	fields, err := reader.fields()
	if err != nil {
		t.Fatal(err)
	}
	object, old, err := reader.objects()
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
	if spec, _ := object.(map[string]any)["spec"].(map[string]any); spec["replicas"] != int64(2) || old != nil {
		t.Errorf("object %v, oldObject %v", object, old)
	}
	req.OldObject.Raw = []byte(`{"kind":`)
	if _, old, err := objectsOf(&schema.Kind{}, req).objects(); err == nil {
		t.Errorf("an object that is no JSON is read as %v", old)
	}
}

// openGizmos is a definition that keeps unknown fields in its specification, and not in the policy there.
const openGizmos = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gizmos.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.policy","verb":"example.com/policy","excludedWhen":"size(self) < 2"}]}'}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos, singular: gizmo, listKind: GizmoList}
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
            properties: {policy: {type: object, properties: {limit: {type: string}, other: {type: string}}}}
`

// C2: server-side apply shows fields in a review that readers never get, because the API server prunes them later. A condition on such an
// object counts as true.
func TestC2_ConditionsDoNotReadFieldsThatReadersNeverGet(t *testing.T) {
	const setOnPolicy = `
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: policy}
spec:
  uncoveredPermissions: ["granular:example.com/policy"]
  resources: [{apiGroups: [example.com], resources: [gizmos]}]
  matchConditions: [{name: few, expression: "size(object.spec.policy) < 2"}]
`
	object := func(spec string) []byte {
		return []byte(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"g","namespace":"n"},"spec":` + spec + `}`)
	}
	const before = `{"policy":{"limit":"a","other":"b"}}`
	for name, c := range map[string]struct {
		after string
		want  bool
	}{
		"the condition is false":      {`{"policy":{"limit":"c","other":"b"}}`, true},
		"the condition is true":       {`{"policy":{"limit":"c"}}`, false},
		"readers get it as true":      {`{"policy":{"limit":"c","own":"x"}}`, false},
		"a field that readers do get": {`{"policy":{"limit":"c","other":"b"},"own":{"x":"y"}}`, true},
	} {
		for guard, documents := range map[string][]string{"excludedWhen": {openGizmos}, "set": {strings.Replace(openGizmos, "size(self) < 2", "false", 1), setOnPolicy}} {
			t.Run(guard+"/"+name, func(t *testing.T) {
				req := scaling()
				req.Kind = metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}
				req.Resource = metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
				req.OldObject.Raw, req.Object.Raw = object(before), object(c.after)
				result, err := reviewer(schematest.Schema(t, documents...), holding("update")).Review(t.Context(), Granular, req)
				if err != nil || result.Allowed != c.want {
					t.Errorf("%+v, %v", result, err)
				}
			})
		}
	}
}

// gadgets is a definition with an embedded resource, and with a barrier in the metadata of both.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations:
    fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"example.com/size"},{"path":".metadata.labels","verb":"labels","parameterSource":"labelKey","excludedWhen":"self == null"},{"path":".spec.template.metadata.labels","verb":"example.com/templateLabels","excludedWhen":"self == null"},{"path":".spec.template","verb":"example.com/template","excludedWhen":"self != null && (!has(self.metadata.annotations) || self.metadata.?ownerReferences[?0].name.hasValue())"}]}'
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
            properties:
              size: {type: integer}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
`

// C2: server-side apply shows null and empty fields in a review that readers never get. Conditions read the object as readers get it.
func TestC2_ConditionsReadObjectsAsReadersDo(t *testing.T) {
	review := func(t *testing.T, before, after, condition string) bool {
		t.Helper()
		documents := []string{gadgets}
		if condition != "" {
			documents = append(documents, "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: size}\nspec: {uncoveredPermissions: ['granular:example.com/size'], resources: [{apiGroups: [example.com], resources: [gadgets]}], matchConditions: [{name: a, expression: '"+condition+"'}]}\n")
		}
		req := scaling()
		req.Kind = metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
		req.Resource = metav1.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
		object := func(metadata, spec string) []byte {
			return []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"n","managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","time":"2026-11-23T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]` + metadata + `},"spec":` + spec + `}`)
		}
		metadata, spec, _ := strings.Cut(before, "|")
		req.OldObject.Raw = object(metadata, spec)
		metadata, spec, _ = strings.Cut(after, "|")
		req.Object.Raw = object(metadata, spec)
		result, err := reviewer(schematest.Schema(t, documents...), holding("update")).Review(t.Context(), Granular, req)
		if err != nil {
			t.Fatal(err)
		}
		return result.Allowed
	}
	for _, c := range []struct {
		condition, after string
		want             bool
	}{
		{"!has(object.metadata.labels)", `|{"size":2}`, false},
		{"!has(object.metadata.labels)", `,"labels":{"a":"b"}|{"size":2}`, true},
		{"!has(object.metadata.labels)", `,"labels":null|{"size":2}`, false},
		{"!has(object.metadata.labels)", `,"labels":{}|{"size":2}`, false},
		{"!has(object.metadata.annotations)", `,"annotations":null|{"size":2}`, false},
		{"!has(object.metadata.ownerReferences)", `,"ownerReferences":[]|{"size":2}`, false},
		{"!has(object.metadata.finalizers)", `,"finalizers":[]|{"size":2}`, false},
		{"!has(object.metadata.generateName)", `,"generateName":""|{"size":2}`, false},
		{"!has(object.metadata.creationTimestamp)", `,"creationTimestamp":null|{"size":2}`, false},
		{"object.metadata.managedFields.size() == 1", `|{"size":2}`, false},
		{"object.metadata.managedFields.size() == 2", `|{"size":2}`, true},
		{"!has(object.spec.template.metadata.labels)", `|{"size":2,"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":null}}}`, false},
		{"!has(object.spec.template.metadata.labels)", `|{"size":2,"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","annotations":{"a":"b"},"labels":{"a":"b"}}}}`, true},
	} {
		t.Run("set/"+c.condition+" "+c.after, func(t *testing.T) {
			if got := review(t, `|{"size":1}`, c.after, c.condition); got != c.want {
				t.Errorf("allowed: %v, want %v", got, c.want)
			}
		})
	}
	const inTemplate = `|{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","annotations":{"a":"b"}%s}}}`
	for _, c := range []struct {
		before, after string
		want          bool
	}{
		{`,"labels":{"a":"b"}|{}`, `,"labels":{"a":"c"}|{}`, true},
		{`,"labels":{"a":"b"}|{}`, `|{}`, false},
		{`,"labels":{"a":"b"}|{}`, `,"labels":null|{}`, false},
		{`,"labels":{"a":"b"}|{}`, `,"labels":{}|{}`, false},
		// null in another field of metadata is no reason to refuse: clients with typed objects apply it.
		{`,"labels":{"a":"b"}|{}`, `,"labels":{"a":"c"},"creationTimestamp":null|{}`, true},
		{strings.Replace(inTemplate, "%s", `,"labels":{"a":"b"}`, 1), strings.Replace(inTemplate, "%s", `,"labels":{"a":"c"}`, 1), true},
		{strings.Replace(inTemplate, "%s", `,"labels":{"a":"b"}`, 1), strings.Replace(inTemplate, "%s", `,"labels":{}`, 1), false},
		{strings.Replace(inTemplate, "%s", "", 1), `|{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"y"}}}`, false},
		{strings.Replace(inTemplate, "%s", "", 1), `|{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"y","annotations":{}}}}`, false},
		{strings.Replace(inTemplate, "%s", "", 1), `|{"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"y","annotations":null}}}`, false},
		{strings.Replace(inTemplate, "%s", "", 1), strings.Replace(inTemplate, "%s", `,"creationTimestamp":null`, 1), true},
		{strings.Replace(inTemplate, "%s", "", 1), strings.Replace(inTemplate, "%s", `,"ownerReferences":[{"uid":"u"}]`, 1), false},
	} {
		t.Run("excludedWhen/"+c.after, func(t *testing.T) {
			if got := review(t, c.before, c.after, ""); got != c.want {
				t.Errorf("allowed: %v, want %v", got, c.want)
			}
		})
	}
}

package admission

import (
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		got, err := variablesOf(req)()
		if err != nil || !reflect.DeepEqual(got.Object, c.want) || !reflect.DeepEqual(got.OldObject, c.old) {
			t.Errorf("%s: %v after %v, %v; want %v after %v", c.object, got.Object, got.OldObject, err, c.want, c.old)
		}
	}
}

func TestC2_ConditionsReadTheRequestByTheNamesOfTheAPI(t *testing.T) {
	dry := true
	req := &admissionv1.AdmissionRequest{Namespace: "shop", DryRun: &dry, Operation: admissionv1.Update}
	req.UserInfo.Username = "alice"
	req.Object.Raw = []byte(`{"kind":"Deployment","spec":{"replicas":2}}`)
	got, err := variablesOf(req)()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"namespace": "shop", "dryRun": true, "operation": "UPDATE", "object": nil, "oldObject": nil} {
		if got.Request[name] != want {
			t.Errorf("request.%s is %v, want %v", name, got.Request[name], want)
		}
	}
	if user, _ := got.Request["userInfo"].(map[string]any); user["username"] != "alice" {
		t.Errorf("request.userInfo is %v", user)
	}
	if spec, _ := got.Object.(map[string]any)["spec"].(map[string]any); spec["replicas"] != int64(2) || got.OldObject != nil {
		t.Errorf("object %v, oldObject %v", got.Object, got.OldObject)
	}
	req.OldObject.Raw = []byte(`{"kind":`)
	if got, err := variablesOf(req)(); err == nil {
		t.Errorf("an object that is no JSON is read as %v", got.OldObject)
	}
}

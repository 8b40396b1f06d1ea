package policies

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// newExpressions returns a compiler of expressions.
func newExpressions(t testing.TB) *expression.Compiler {
	t.Helper()
	out, err := expression.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// noTypes is an API server that serves version v1, and publishes nothing about it that CEL can use.
func noTypes(endpoint.Ref) (map[string]*spec.Schema, error) {
	return map[string]*spec.Schema{"v1": {}}, nil
}

// about returns a policy about updates of deployments by alice.
func about(effect v1alpha1.PolicyEffect, condition string) v1alpha1.ConditionalPolicySpec {
	return v1alpha1.ConditionalPolicySpec{
		Subjects:  []v1alpha1.Subject{{Kind: "User", Name: "alice"}},
		Verbs:     []string{"update", "patch"},
		Resources: []v1alpha1.PolicyResource{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}}},
		Effect:    effect, Condition: condition, Description: "why",
	}
}

// setOf returns a set of policies that must have no fault.
func setOf(t testing.TB, specs ...v1alpha1.ConditionalPolicySpec) *Set {
	t.Helper()
	compile := newCompiler(newExpressions(t), noTypes)
	var all []*policy
	for i := range specs {
		p, faults := compile.compile(&v1alpha1.ConditionalPolicy{ObjectMeta: metav1.ObjectMeta{Name: nameOf(i)}, Spec: specs[i]}, nil)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		all = append(all, p)
	}
	return newSet(all)
}

func nameOf(i int) string { return "p" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }

// asked is the question of the authorization phase about an update of a Deployment by alice.
func asked() authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "system:authenticated"}}, Verb: "update",
		APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Namespace: "shop", Name: "web", ResourceRequest: true,
	}
}

// updating is the same request in admission.
func updating(t testing.TB, old, object map[string]any) *admissionv1.AdmissionRequest {
	t.Helper()
	resource := metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	kind := metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	req := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Resource: resource, RequestResource: &resource, Kind: kind, RequestKind: &kind, Namespace: "shop", Name: "web",
		UserInfo: authenticationv1.UserInfo{Username: "alice", Groups: []string{"dev", "system:authenticated"}},
	}
	req.OldObject.Raw, req.Object.Raw = encoded(t, old), encoded(t, object)
	return req
}

func encoded(t testing.TB, spec map[string]any) []byte {
	t.Helper()
	if spec == nil {
		return nil
	}
	out, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func replicas(n int) map[string]any { return map[string]any{"replicas": n} }

// stored is a policy as the API server has it.
func stored(t testing.TB, name string, generation int64, spec any) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"apiVersion": "fieldperm.dev/v1alpha1", "kind": "ConditionalPolicy", "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	out.SetName(name)
	out.SetUID(types.UID(name))
	out.SetGeneration(generation)
	return out
}

// written is the write of a request, whose changed fields are not worked out.
func written(t testing.TB, req *admissionv1.AdmissionRequest) *admission.Write {
	t.Helper()
	return admission.NewWrite(req, nil, nil)
}

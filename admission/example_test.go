package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// scaling is the request that a kube-apiserver sends to a webhook when alice scales a Deployment.
const scaling = `{
  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
  "request": {
    "uid": "1", "operation": "UPDATE", "namespace": "shop", "name": "web",
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "userInfo": {"username": "alice"},
    "oldObject": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 1}},
    "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3}}
  }
}`

// held is a user with these verbs.
type held []string

func (h held) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h, verb))}, nil
}

// This example decides on an AdmissionReview. Response makes an AdmissionResponse of result and error.
func ExampleReviewer() {
	compiled, errs := load.Offline(nil) // The kinds of Kubernetes.
	reviewer := &admission.Reviewer{
		Schema:     func() *schema.Schema { return compiled },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return held{"granular", "granular:label"} },
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(scaling), &review); err != nil || len(errs) > 0 {
		fmt.Println(err, errs)
		return
	}
	result, err := reviewer.Review(context.Background(), admission.Granular, review.Request)
	if err != nil {
		fmt.Println(err) // An error is not a denial: admission.Code says 400, 500 or 503.
		return
	}
	fmt.Println(result.Allowed)
	fmt.Println(result.Message)
	// Output:
	// false
	// deployments.apps "web" is forbidden: User "alice" may not change .spec.replicas: needs any one of granular:scale, granular:specification, granular:*
}

package fieldperm_test

import (
	"context"
	"fmt"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema/load"
)

// This example lists the changes between two states of a Deployment, and the verbs that cover each change.
func ExampleDiff() {
	compiled, errs := load.Offline(nil) // The kinds of Kubernetes.
	kind, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		fmt.Println(err, errs)
		return
	}
	before := []byte(`{"spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}`)
	after := []byte(`{"spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}`)
	requirements, err := fieldperm.Diff(context.Background(), before, after, kind, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range requirements {
		fmt.Println(r.Path, r.Operation, r.Chain[0], "…", r.Chain[len(r.Chain)-1])
	}
	// Output:
	// .spec.replicas modified granular:* … granular:scale
	// .spec.template.spec.containers[name="web"].image modified granular:* … granular:image(web)
}

// held is a user with these verbs.
type held []string

func (h held) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(slices.Contains(h, verb))}, nil
}

// This example decides whether a user with the marker and one verb may make both changes.
func ExampleDecide() {
	compiled, errs := load.Offline(nil)
	kind, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		fmt.Println(err, errs)
		return
	}
	before := []byte(`{"spec": {"replicas": 1, "paused": true}}`)
	after := []byte(`{"spec": {"replicas": 3}}`)
	requirements, err := fieldperm.Diff(context.Background(), before, after, kind, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	review := fieldperm.Review{Generic: []string{"update", "patch"}, Requirements: requirements}
	decision, err := fieldperm.Decide(context.Background(), held{"granular", "granular:scale"}, review, fieldperm.Limits{})
	if err != nil {
		fmt.Println(err) // An error is not a denial: nothing was decided.
		return
	}
	fmt.Println(decision.Allowed)
	if denial := decision.Denial; denial != nil {
		fmt.Println(denial.Requirement.Path, "needs any of", denial.Needs)
	}
	// Output:
	// false
	// .spec.paused needs any of [granular:suspension granular:specification granular:*]
}

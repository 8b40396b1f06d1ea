package admission_test

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// An API server that handles conditions (KEP-5681) has fieldperm as one of its authorizers. Its filter asks before the body is read, its
// validating admission evaluates the decision.
func ExampleConditionalAuthorizer() {
	compiled, errs := load.Offline(nil) // The kinds of Kubernetes.
	verbs := held{"get", "granular", "granular:scale"}
	granular := &admission.ConditionalAuthorizer{
		Allowed:    func(group, resource, _ string) bool { return group == "apps" && resource == "deployments" },
		Authorizer: newQuestion,
		Reviewer: &admission.Reviewer{
			Schema:     func() *schema.Schema { return compiled },
			Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return verbs },
		},
		Verbs: func(context.Context, authorizer.Attributes) ([]string, bool) { return verbs[2:], true },
	}
	chain, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "grants", Authorizer: authorizer.AuthorizerFunc(grants)},
		union.NamedAuthorizer{AuthorizerName: "fieldperm", Authorizer: granular},
	)
	if err != nil || len(errs) > 0 {
		fmt.Println(err, errs)
		return
	}
	bot := &user.DefaultInfo{Name: "bot"}
	decision := chain.ConditionsAwareAuthorize(context.Background(), authorizer.AttributesRecord{
		User: bot, Verb: "update", APIGroup: "apps", APIVersion: "v1", Resource: "deployments", Namespace: "shop", Name: "web", ResourceRequest: true,
	})
	for name, of := range decision.UnionedDecisions() {
		for condition := range of.ConditionsMap().AllowConditions() {
			fmt.Printf("%s: if %s\n", name, condition.GetDescription())
		}
	}
	deployment := func(replicas int64, paused bool) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
			"spec": map[string]any{"replicas": replicas, "paused": paused},
		}}
	}
	gvk := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, paused := range []bool{false, true} {
		write := apiserveradmission.NewAttributesRecord(deployment(3, paused), deployment(1, false), gvk, "shop", "web",
			gvk.GroupVersion().WithResource("deployments"), "", apiserveradmission.Update, nil, false, bot)
		allowed, reason, err := chain.EvaluateConditions(context.Background(), decision, write)
		fmt.Println(allowed, reason, err)
	}
	// Output:
	// fieldperm: if each changed field is covered by a granular verb of the user: granular:scale
	// Allow granular: the user holds the verb of each changed field <nil>
	// NoOpinion fieldperm: deployments.apps "web" is forbidden: User "bot" may not change .spec.paused: needs any one of granular:suspension, granular:specification, granular:* <nil>
}

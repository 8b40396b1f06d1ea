package admission_test

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// grants is the program's own authorizer, verbs by user. It stands for RBAC.
func grants(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	verbs := map[string][]string{"alice": {"update"}, "bot": {"get", "granular", "granular:scale"}}
	if slices.Contains(verbs[a.GetUser().GetName()], a.GetVerb()) {
		return authorizer.DecisionAllow, "granted", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// question is the question that fieldperm asks the program's own authorizer: user and object are known, the verb is not.
type question authorizer.AttributesRecord

// Authorize asks for one verb. The authorizer that it asks must not contain fieldperm's own. If it does, a generic question needs
// admission.GenericOnlyKey in the user's extra.
func (q question) Authorize(ctx context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	q.Verb = verb
	decision, reason, err := grants(ctx, authorizer.AttributesRecord(q))
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.Outcome(decision), Reason: reason, By: "grants"}, err
}

// newQuestion takes user and object from a SubjectAccessReview.
func newQuestion(spec *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer {
	u := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		u.Extra[key] = values
	}
	r := spec.ResourceAttributes
	return question{
		User: u, Namespace: r.Namespace, Name: r.Name, ResourceRequest: true,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
	}
}

// granular is fieldperm as one of the program's authorizers.
type granular struct{ reviewer admission.AuthorizeReviewer }

func (g *granular) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if !a.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, "", nil
	}
	u := a.GetUser()
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.GetVerb(), Namespace: a.GetNamespace(), Name: a.GetName(),
			Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		},
	}
	for key, values := range u.GetExtra() {
		spec.Extra[key] = values
	}
	status, err := g.reviewer.Review(ctx, spec)
	if err != nil || !status.Allowed {
		return authorizer.DecisionNoOpinion, status.Reason, err
	}
	return authorizer.DecisionAllow, status.Reason, nil
}

// An API server in Go puts fieldperm behind its own authorizer. Its admission must ask a Reviewer about each write of the
// resources in Allowed: an Allow of fieldperm grants no field.
func ExampleAuthorizeReviewer() {
	behind := &granular{admission.AuthorizeReviewer{
		Allowed:    func(group, resource, _ string) bool { return group == "apps" && resource == "deployments" },
		Authorizer: newQuestion,
		// nil means that admission asks the Reviewer about this write. A program that cannot prove this returns an error.
		Enforced: func(context.Context, *authorizationv1.ResourceAttributes) error { return nil },
	}}
	chain, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "grants", Authorizer: authorizer.AuthorizerFunc(grants)},
		union.NamedAuthorizer{AuthorizerName: "fieldperm", Authorizer: authorizer.AuthorizerFunc(behind.Authorize)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"alice", "bot", "eve"} {
		decision, reason, err := chain.Authorize(context.Background(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name}, Verb: "update", APIGroup: "apps", Resource: "deployments", Namespace: "shop", Name: "web", ResourceRequest: true,
		})
		if err != nil {
			fmt.Println(err) // An error is not a denial: the request ends with 500.
			return
		}
		fmt.Printf("%s allowed=%t %q\n", name, decision == authorizer.DecisionAllow, reason)
	}
	// Output:
	// alice allowed=true "granted"
	// bot allowed=true "granular: the user holds \"granular\"; admission decides on each field"
	// eve allowed=false ""
}

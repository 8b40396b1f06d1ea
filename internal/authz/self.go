package authz

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// selfName is the name of the authorizer of Self in decisions.
const selfName = "kube-apiserver"

// Self returns a chain that asks the API server about the user of a connection, by SelfSubjectAccessReviews: every user may create these. It is
// for one call of a command. A decision is cached as long as the chain exists, and Run does nothing.
//
// u is the user of the connection, as a SelfSubjectReview returns it. A question about another user is an error. Such a review has no extra of
// the user, so that fieldperm's own authorizer may answer a check of a generic verb. The prefix of its reason tells that answer apart (A4).
func Self(cluster *rest.Config, u user.Info) (*Chain, error) {
	config := rest.CopyConfig(cluster)
	config.ContentConfig = rest.ContentConfig{AcceptContentTypes: runtime.ContentTypeJSON, ContentType: runtime.ContentTypeJSON}
	config.QPS, config.RateLimiter = -1, nil
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return strictTransport{base, "SelfSubjectAccessReview"}
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &self{name: u.GetName(), decisions: map[authorizationv1.ResourceAttributes]authorizerDecision{}}
	s.create = func(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
		return client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	}
	return Fixed(selfName, authorizer.AuthorizerFunc(s.Authorize)), nil
}

// self asks about the user of its connection.
type self struct {
	name   string
	create func(context.Context, *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error)

	mu        sync.Mutex
	decisions map[authorizationv1.ResourceAttributes]authorizerDecision
}

// Authorize returns an error with Deny if the API server does not answer, and one with NoOpinion if an authorizer of its chain failed and no other
// had an opinion.
func (s *self) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if u := a.GetUser(); u == nil || u.GetName() != s.name {
		return authorizer.DecisionDeny, "", fmt.Errorf("question is about another user than %q: ask by SubjectAccessReviews", s.name)
	}
	asked := authorizationv1.ResourceAttributes{
		Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
		Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
	}
	s.mu.Lock()
	known, isKnown := s.decisions[asked]
	s.mu.Unlock()
	if isKnown {
		return known.decision, known.reason, nil
	}
	sent := asked
	ctx, cancel := context.WithTimeout(ctx, flightTime)
	defer cancel()
	review, err := s.create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &sent}})
	if i := (*inconclusive)(nil); errors.As(err, &i) {
		return authorizer.DecisionNoOpinion, "", i
	}
	if err != nil {
		return authorizer.DecisionDeny, "", fmt.Errorf("SelfSubjectAccessReview: %w: allow create on selfsubjectaccessreviews.authorization.k8s.io, or give --as", err)
	}
	out := authorizerDecision{reason: review.Status.Reason}
	switch {
	case review.Status.Allowed && review.Status.Denied:
		return authorizer.DecisionDeny, "", errors.New("the review both allows and denies: correct the authorizer of the API server that answers so")
	case review.Status.Allowed:
		out.decision = authorizer.DecisionAllow
	case review.Status.Denied:
		out.decision = authorizer.DecisionDeny
	default:
		out.decision = authorizer.DecisionNoOpinion
	}
	s.mu.Lock()
	s.decisions[asked] = out
	s.mu.Unlock()
	return out.decision, out.reason, nil
}

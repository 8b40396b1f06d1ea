package admission

import (
	"context"
	"errors"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/verbs"
)

// GenericOnlyKey is the extra key that fieldperm's own checks for the generic permission carry. The
// API server's AuthorizationConfiguration keeps such checks from /authorize, and /authorize has no
// opinion on them, so that nobody is taken for a holder of update because it is one of granular
// verbs (A4).
const GenericOnlyKey = "fieldperm.dev/generic-only"

// allowReason is the reason of every Allow. Its prefix is a promise (A3): webhook match conditions
// and Decide tell a generic permission by its absence.
const allowReason = verbs.Prefix + ` the user holds "granular"; admission decides on each field`

// unprovenReason begins the reason for having no opinion on a holder of the marker. API servers show it.
const unprovenReason = verbs.Prefix + ` the user holds "granular", but is not let through: `

// AuthorizeReviewer is fieldperm as an authorizer of the API server (A1 to A5). It lets a request
// for create, update or patch pass authorization when its author holds the marker, because admission
// will look at each field. It never denies; where it does not allow it has no opinion. The zero
// AuthorizeReviewer allows nothing.
type AuthorizeReviewer struct {
	// Allowed reports whether a resource is persisted and served by this API server itself, so that
	// its writes go through admission (A2).
	Allowed func(group, resource, subresource string) bool
	// Authorizer returns the authorizer that knows the user and the resource attributes.
	Authorizer func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer
	// Enforced is nil if admission is proven to look at what the attributes stand for (A5). The error
	// is for the user to read.
	Enforced func(context.Context, *authorizationv1.ResourceAttributes) error
	// Canaries tells the requests that prove it.
	Canaries Canaries
}

// Review answers one SubjectAccessReview. An error is a 400 or a 500 by Code; then the API server's
// failurePolicy for this authorizer decides.
func (r *AuthorizeReviewer) Review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	noOpinion := authorizationv1.SubjectAccessReviewStatus{}
	switch {
	case spec.ResourceAttributes == nil && spec.NonResourceAttributes == nil:
		return noOpinion, badRequest("subject access review: has neither resourceAttributes nor nonResourceAttributes: send one of them")
	case spec.ResourceAttributes != nil && spec.NonResourceAttributes != nil:
		return noOpinion, badRequest("subject access review: has both resourceAttributes and nonResourceAttributes: send one of them")
	case spec.User == "" && len(spec.Groups) == 0:
		return noOpinion, badRequest("subject access review: names neither user nor groups: send .spec.user")
	}
	if !writes(spec) {
		return noOpinion, nil
	}
	if spec.User == CanaryUser {
		// Whatever else it may hold, it passes by its nonce alone, also where the marker passes nobody: a Binding
		// writes into Pods, whose barriers hold there.
		a := spec.ResourceAttributes
		if r.Canaries != nil && (r.allowed(a) || endpoint.IsBinding(a.Group, a.Resource, a.Subresource)) && r.Canaries.Authorize(spec) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: canaryReason}, nil
		}
		return noOpinion, nil
	}
	if !r.allowed(spec.ResourceAttributes) {
		return noOpinion, nil
	}
	if r.Authorizer == nil {
		return noOpinion, errors.New("authorize: has no authorizer: configure one")
	}
	// The same question with the verb granular, which this authorizer never answers: no recursion.
	answer, err := r.Authorizer(spec).Authorize(ctx, verbs.Marker, false)
	if err != nil {
		return noOpinion, err
	}
	if !answer.Allowed {
		return noOpinion, answer.Failure
	}
	// Last of all, so that nothing is let through that was proven before something slow, and nothing is
	// proven for those who are not let through.
	if err := r.enforced(ctx, spec.ResourceAttributes); err != nil {
		klog.FromContext(ctx).V(4).Info("Not let through", "resource", spec.ResourceAttributes.Resource, "group", spec.ResourceAttributes.Group, "err", err)
		return authorizationv1.SubjectAccessReviewStatus{Reason: unprovenReason + err.Error()}, nil
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: allowReason}, nil
}

func (r *AuthorizeReviewer) enforced(ctx context.Context, attributes *authorizationv1.ResourceAttributes) error {
	if r.Enforced == nil {
		return errors.New("nothing proves that admission is enforced: configure the interlock")
	}
	return r.Enforced(ctx, attributes)
}

func (r *AuthorizeReviewer) allowed(a *authorizationv1.ResourceAttributes) bool {
	return r.Allowed != nil && r.Allowed(a.Group, a.Resource, a.Subresource)
}

// writes tells the questions that may be about a write, and that fieldperm does not ask itself, from all others.
func writes(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	if spec.ResourceAttributes == nil {
		return false
	}
	switch spec.ResourceAttributes.Verb {
	case "create", "update", "patch":
	default:
		return false
	}
	for key := range spec.Extra {
		// API servers lower the case of extra keys.
		if strings.EqualFold(key, GenericOnlyKey) {
			return false
		}
	}
	return true
}

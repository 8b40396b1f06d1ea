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

// GenericOnlyKey is the extra key in fieldperm's own checks for the generic permission. The API server's AuthorizationConfiguration keeps
// such checks from /authorize, and /authorize returns NoOpinion for them. So a user that holds only granular verbs never passes as a
// holder of update (A4).
const GenericOnlyKey = "fieldperm.dev/generic-only"

// allowReason is the reason of every Allow. Other components rely on its prefix (A3): webhook match conditions and Decide accept an Allow
// as the generic permission only if its reason lacks the prefix.
const allowReason = verbs.Prefix + ` the user holds "granular"; admission decides on each field`

// unprovenReason begins the reason of a NoOpinion for a holder of the marker. API servers show it to the user.
const unprovenReason = verbs.Prefix + ` the user holds "granular", but is not let through: `

// AuthorizeReviewer is fieldperm's authorizer for the API server (A1 to A5). It allows a request for create, update or patch if the user
// holds the marker, because admission checks each field later. It never denies; if it does not allow, it returns NoOpinion. The zero
// AuthorizeReviewer allows nothing.
type AuthorizeReviewer struct {
	// Allowed reports whether this API server itself persists and serves the resource, so that its writes go through admission (A2).
	Allowed func(group, resource, subresource string) bool
	// Authorizer returns the authorizer for the user and the resource attributes.
	Authorizer func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer
	// Enforced returns nil if it is proven that admission checks writes with these attributes (A5). The user sees the text of the error.
	Enforced func(context.Context, *authorizationv1.ResourceAttributes) error
	// Canaries recognizes fieldperm's own probes, which prove enforcement.
	Canaries Canaries
}

// Review answers one SubjectAccessReview. Code returns 400 or 500 for an error; the API server's failurePolicy for this authorizer then
// decides.
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
		// The probe user is allowed by its nonce only, whatever verbs it holds. This includes Bindings, for which the marker allows no
		// other user: a Binding writes into Pods, whose barriers hold there.
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
	// This check asks for the verb granular, which this authorizer never answers, so there is no recursion.
	answer, err := r.Authorizer(spec).Authorize(ctx, verbs.Marker, false)
	if err != nil {
		return noOpinion, err
	}
	if !answer.Allowed() {
		return noOpinion, answer.Failure
	}
	// This check comes last. A proof from before a slow check might be outdated, and a user that is not allowed anyway needs no proof.
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

// writes reports whether the review may be about a write and is not one of fieldperm's own checks.
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

package admission

import (
	"context"
	"errors"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
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

// AuthorizeReviewer is fieldperm as an authorizer of the API server (A1 to A4). It lets a request
// for create, update or patch pass authorization when its author holds the marker, because admission
// will look at each field. It never denies; where it does not allow it has no opinion. The zero
// AuthorizeReviewer allows nothing.
type AuthorizeReviewer struct {
	// Allowed reports whether a resource is persisted and served by this API server itself, so that
	// its writes go through admission (A2).
	Allowed func(group, resource, subresource string) bool
	// Authorizer returns the authorizer that knows the user and the resource attributes.
	Authorizer func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer
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
	if !r.mayAllow(spec) {
		return noOpinion, nil
	}
	if r.Authorizer == nil {
		return noOpinion, errors.New("authorize: has no authorizer: configure one")
	}
	// The same question with the verb granular, which this authorizer never answers: no recursion.
	answer, err := r.Authorizer(spec).Authorize(ctx, verbs.Marker, false)
	if err != nil || !answer.Allowed {
		return noOpinion, err
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: allowReason}, nil
}

// mayAllow tells the questions that the marker can answer from all others.
func (r *AuthorizeReviewer) mayAllow(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	attributes := spec.ResourceAttributes
	if attributes == nil || r.Allowed == nil {
		return false
	}
	switch attributes.Verb {
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
	return r.Allowed(attributes.Group, attributes.Resource, attributes.Subresource)
}

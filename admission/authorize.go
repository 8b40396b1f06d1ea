package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
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

// conditionalReason is the reason of an Allow that depends on the objects. It has the prefix too, so admission looks at the request.
const conditionalReason = verbs.Prefix + ` the request is allowed on conditions; admission evaluates them on the object`

// StatusUser is a user about whom administrators ask whether enforcement is proven. It is never let in: the reason of the NoOpinion has the answer.
const StatusUser = "fieldperm:status"

// StatusReason begins that reason. ProvenReason follows it, and then the number of API servers, if enforcement is proven.
const (
	StatusReason = verbs.Prefix + " status: "
	ProvenReason = "enforcement is proven on each kube-apiserver, of "
	// LoadedReason follows the number if each of them has loaded the rules of all barriers, too.
	LoadedReason = ", with all barriers"
)

// These begin the reason of a NoOpinion for a user that would be let through if enforcement were proven. API servers show it to the user.
const (
	unprovenReason            = verbs.Prefix + ` the user holds "granular", but is not let through: `
	unreadReason              = verbs.Prefix + ` nobody is let through: `
	unprovenConditionalReason = verbs.Prefix + ` the request is allowed on conditions, but is not let through: `
)

// readVerb is the verb without which nobody is let in to update or patch (A7).
const readVerb = "get"

// AuthorizeReviewer is fieldperm's authorizer for the API server (A1 to A5, A7). It allows a request for a write if policies allow it whatever
// the objects are. It allows it too if policies can allow it for some objects, or if the user holds the marker for a create, an update or a
// patch, because admission decides later with the objects. For an update and a patch the user needs get as well then. It never denies; if it
// does not allow, it returns NoOpinion. The zero AuthorizeReviewer allows nothing.
type AuthorizeReviewer struct {
	// Allowed reports whether this API server itself persists and serves the resource, so that its writes go through admission (A2).
	Allowed func(group, resource, subresource string) bool
	// Authorizer returns the authorizer for the user and the resource attributes.
	Authorizer func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer
	// Enforced returns nil if it is proven that admission checks writes with these attributes (A5). The user sees the text of the error.
	Enforced func(context.Context, *authorizationv1.ResourceAttributes) error
	// Status returns what follows StatusReason.
	Status func() string
	// Probes recognizes fieldperm's own probes, which prove enforcement.
	Probes Probes
	// Policies returns the authorizer that decides on conditions; nil means that there are none. An error means that it is not known. The
	// authorizer is asked for the verb of the request, for the marker and for get.
	Policies func() (authorizer.Authorizer, error)
}

// Review answers one SubjectAccessReview. Code returns 400 or 500 for an error; the API server's failurePolicy for this authorizer then
// decides.
func (r *AuthorizeReviewer) Review(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	noOpinion := authorizationv1.SubjectAccessReviewStatus{}
	if err := checkSpec(spec); err != nil {
		return noOpinion, err
	}
	if !writes(spec) {
		return noOpinion, nil
	}
	if spec.User == ProbeUser {
		// The probe user is allowed by its nonce only, whatever verbs it holds. This includes what only a condition allows.
		if r.Probes != nil && r.probed(spec.ResourceAttributes) && r.Probes.Authorize(spec) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: probeReason}, nil
		}
		return noOpinion, nil
	}
	if spec.User == StatusUser {
		if r.Status == nil {
			return noOpinion, nil
		}
		return authorizationv1.SubjectAccessReviewStatus{Reason: StatusReason + r.Status()}, nil
	}
	policies, err := r.policies()
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{Reason: unreadReason + err.Error()}, nil
	}
	decision := policies.ask(ctx, spec, spec.ResourceAttributes.Verb)
	switch {
	case decision.IsAllow():
		// No object changes this, so admission need not be asked.
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: decision.Reason()}, nil
	case decision.IsDeny():
		// A Deny that is due to a failure is an error (P4).
		return authorizationv1.SubjectAccessReviewStatus{Reason: reasonOf(decision)}, decision.Error()
	case canBecomeAllowed(decision) && (r.allowed(spec.ResourceAttributes) || r.created(spec.ResourceAttributes)):
		return r.letThrough(ctx, policies, spec, decision.Error(), conditionalReason, unprovenConditionalReason)
	case !r.allowed(spec.ResourceAttributes) || !granularVerbs(spec.ResourceAttributes.Verb):
		return noOpinion, decision.Error()
	}
	answer, err := r.holds(ctx, policies, spec, verbs.Marker)
	if err != nil {
		return noOpinion, err
	}
	if !answer.Allowed() {
		// An authorizer that failed for the verb of the request might have allowed it (P4).
		return noOpinion, cmp.Or(answer.Failure, decision.Error())
	}
	return r.letThrough(ctx, policies, spec, decision.Error(), allowReason, unprovenReason)
}

// checkSpec returns an error for a question that can never be answered.
func checkSpec(spec *authorizationv1.SubjectAccessReviewSpec) error {
	switch {
	case spec.ResourceAttributes == nil && spec.NonResourceAttributes == nil:
		return badRequest("subject access review: has neither resourceAttributes nor nonResourceAttributes: send one of them")
	case spec.ResourceAttributes != nil && spec.NonResourceAttributes != nil:
		return badRequest("subject access review: has both resourceAttributes and nonResourceAttributes: send one of them")
	case spec.User == "" && len(spec.Groups) == 0:
		return badRequest("subject access review: names neither user nor groups: send .spec.user")
	}
	return nil
}

// letThrough allows a request on which admission decides, if the user may read the object and it is proven that admission is asked. The proof
// comes last: one from before a slow check might be outdated, and a user that is not allowed anyway needs none. failed is the error of an
// authorizer that might have allowed the verb of the request.
func (r *AuthorizeReviewer) letThrough(
	ctx context.Context, policies policyAuthorizer, spec *authorizationv1.SubjectAccessReviewSpec, failed error, allowed, unproven string,
) (authorizationv1.SubjectAccessReviewStatus, error) {
	reason, err := r.unreadable(ctx, policies, spec)
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	if reason != "" {
		return authorizationv1.SubjectAccessReviewStatus{Reason: reason}, failed
	}
	if err := r.enforced(ctx, spec.ResourceAttributes); err != nil {
		klog.FromContext(ctx).V(4).Info("Not let through", "resource", spec.ResourceAttributes.Resource, "group", spec.ResourceAttributes.Group, "err", err)
		return authorizationv1.SubjectAccessReviewStatus{Reason: unproven + err.Error()}, nil
	}
	return authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: allowed}, nil
}

// unreadable is the function of the same name for the policies and the authorizer of the reviewer.
func (r *AuthorizeReviewer) unreadable(ctx context.Context, p policyAuthorizer, spec *authorizationv1.SubjectAccessReviewSpec) (string, error) {
	return unreadable(spec.ResourceAttributes, func() (fieldperm.AuthorizerDecision, error) { return r.holds(ctx, p, spec, readVerb) })
}

// unreadable returns the reason why the user may not be let in to an update or a patch, "" if nothing is missing. kube-apiserver makes the new
// object of the stored one for anyone whom authorization lets in, and quotes both in the errors of a patch and of validation, before admission
// is asked. So only a user that may read the object is let in to write a part of it (A7). An authorizer that failed might have allowed get, so
// its error is one of the request (P4).
func unreadable(a *authorizationv1.ResourceAttributes, get func() (fieldperm.AuthorizerDecision, error)) (string, error) {
	if a.Verb != "update" && a.Verb != "patch" {
		return "", nil
	}
	answer, err := get()
	if err != nil || answer.Allowed() {
		return "", err
	}
	if answer.Failure != nil {
		return "", answer.Failure
	}
	on := nameOf(schema.ResourceRef{Group: a.Group, Resource: a.Resource, Subresource: a.Subresource})
	if a.Name != "" {
		on += fmt.Sprintf(" %q", a.Name)
	}
	return fmt.Sprintf(verbs.Prefix+` the user lacks "get" on %s, and kube-apiserver reads the object for the user before admission: grant get`, on), nil
}

// holds asks for the marker or for get: first the policies, then the authorizer. Review answers no question about either, so there is no
// recursion. A condition that can allow the marker counts as met, because admission asks for the marker again. Nobody asks for get again, and
// reads have no conditions: such a condition counts as not met, and as met if it may deny.
func (r *AuthorizeReviewer) holds(
	ctx context.Context, p policyAuthorizer, spec *authorizationv1.SubjectAccessReviewSpec, verb string,
) (fieldperm.AuthorizerDecision, error) {
	decision := p.ask(ctx, spec, verb)
	switch {
	case decision.IsAllow(), verb == verbs.Marker && canBecomeAllowed(decision):
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: decision.Reason()}, nil
	case decision.IsDeny(), verb == readVerb && decision.FailureDecision() == authorizer.DecisionDeny:
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: decision.Reason(), Failure: decision.Error()}, nil
	case r.Authorizer == nil:
		return fieldperm.AuthorizerDecision{}, errors.New("authorize: has no authorizer: configure one")
	}
	out, err := r.Authorizer(spec).Authorize(ctx, verb, false)
	if !out.Allowed() {
		out.Failure = cmp.Or(out.Failure, decision.Error())
	}
	return out, err
}

// policyAuthorizer decides on conditions. The zero value has no opinion.
type policyAuthorizer struct{ authorizer.Authorizer }

func (r *AuthorizeReviewer) policies() (policyAuthorizer, error) {
	if r.Policies == nil {
		return policyAuthorizer{}, nil
	}
	a, err := r.Policies()
	if err != nil {
		return policyAuthorizer{}, err
	}
	return policyAuthorizer{a}, nil
}

// ask asks for a verb on the resource of a review.
func (p policyAuthorizer) ask(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec, verb string) authorizer.ConditionsAwareDecision {
	if p.Authorizer == nil {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	a := spec.ResourceAttributes
	u := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		u.Extra[key] = values
	}
	return p.ConditionsAwareAuthorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: verb, Namespace: a.Namespace, APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
		ResourceRequest: true,
	})
}

// reasonOf returns the reason of a Deny, or the error that it is due to.
func reasonOf(d authorizer.ConditionsAwareDecision) string {
	if err := d.Error(); d.Reason() == "" && err != nil {
		return unreadReason + err.Error()
	}
	return d.Reason()
}

// canBecomeAllowed reports whether objects can exist for which a conditional decision is Allow.
func canBecomeAllowed(d authorizer.ConditionsAwareDecision) bool {
	return !d.IsUnconditional() && d.PossibleDecisions().Has(authorizer.DecisionAllow)
}

func (r *AuthorizeReviewer) enforced(ctx context.Context, attributes *authorizationv1.ResourceAttributes) error {
	if r.Enforced == nil {
		return errors.New("nothing proves that admission is enforced: configure a proof")
	}
	return r.Enforced(ctx, attributes)
}

func (r *AuthorizeReviewer) allowed(a *authorizationv1.ResourceAttributes) bool {
	return r.Allowed != nil && r.Allowed(a.Group, a.Resource, a.Subresource)
}

// probed reports whether probes may make a request.
func (r *AuthorizeReviewer) probed(a *authorizationv1.ResourceAttributes) bool {
	switch {
	case !granularVerbs(a.Verb) && a.Verb != "delete":
		return false
	case endpoint.IsConnection(a.Group, a.Resource, a.Subresource):
		return true
	}
	return r.allowed(a)
}

// granularVerbs reports whether granular verbs can cover what a verb does (C4).
func granularVerbs(verb string) bool { return verb == "create" || verb == "update" || verb == "patch" }

// created reports whether a request creates the body of a subresource, such as a token, or connects to a Pod, and admission sees that body. The
// marker allows no such request, because the body says nothing of the fields that it changes. A condition reads the body itself.
func (r *AuthorizeReviewer) created(a *authorizationv1.ResourceAttributes) bool {
	if a.Verb != "create" || a.Subresource == "" || r.Allowed == nil || !r.Allowed(a.Group, a.Resource, "") {
		return false
	}
	e, ok := endpoint.Lookup(a.Group, a.Resource, a.Subresource)
	return ok && (e.Creates() || endpoint.IsConnection(a.Group, a.Resource, a.Subresource))
}

// writes reports whether the review may be about a write and is not one of fieldperm's own checks.
func writes(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	if spec.ResourceAttributes == nil {
		return false
	}
	switch spec.ResourceAttributes.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
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

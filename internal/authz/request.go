package authz

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// forRequest returns an authorizer for the object as the request named it (requestResource), because the API server authorized that
// resource.
func forRequest(chain *shared, req *admissionv1.AdmissionRequest) fieldperm.Authorizer {
	r := admission.RequestedResource(req)
	attributes := authorizer.AttributesRecord{
		Namespace: req.Namespace, Name: req.Name,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		ResourceRequest: true,
	}
	u := &req.UserInfo
	return newAsker(chain, attributes, u.Username, u.UID, u.Groups, sortedExtra(u.Extra))
}

// forReview omits the selectors of the review: granular verbs are about writes.
func forReview(chain *shared, spec *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer {
	r := spec.ResourceAttributes
	attributes := authorizer.AttributesRecord{
		Namespace: r.Namespace, Name: r.Name,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		ResourceRequest: true,
	}
	return newAsker(chain, attributes, spec.User, spec.UID, spec.Groups, sortedExtra(spec.Extra))
}

// asker holds the user and the object of the checks. Authorize adds the verb.
type asker struct {
	chain *shared
	of    identity
}

func newAsker(chain *shared, attributes authorizer.AttributesRecord, name, uid string, groups []string, extra []extraValues) *asker {
	// A user whose own extra has the key must not lose granular verbs because of it, and the user's value must not replace
	// fieldperm's value. API servers change extra keys to lower case.
	extra = slices.DeleteFunc(extra, func(e extraValues) bool { return strings.EqualFold(e.key, admission.GenericOnlyKey) })
	return &asker{chain: chain, of: identity{AttributesRecord: attributes, user: name, uid: uid, groups: groups, extra: extra}}
}

// Authorize asks for one verb. It returns the authorizer's reason unchanged: Decide never counts an answer as generic if its reason
// has fieldperm's own prefix (A4's second lock).
func (k *asker) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	// A span costs as much as a check with a cached decision, so a span is started only if it is recorded.
	var span trace.Span
	if trace.SpanFromContext(ctx).IsRecording() {
		ctx, span = tracing.Start(ctx, "check", tracing.Verb(verb), tracing.Generic.Bool(generic))
		defer span.End()
	}
	v, err := k.chain.ask(ctx, &check{identity: &k.of, verb: verb, generic: generic})
	failure := cmp.Or(err, v.failure)
	if span != nil {
		span.SetAttributes(tracing.Result.String(resultOf(decisionOf(v), failure)))
	}
	if failure != nil {
		failure = fmt.Errorf("authorizer: verb %q on %q: %w", verb, k.of.Resource, failure)
	}
	if err != nil {
		return fieldperm.AuthorizerDecision{}, failure
	}
	return fieldperm.AuthorizerDecision{Outcome: outcomeOf(v), Reason: v.reason, By: v.by, Failure: failure}, nil
}

// outcomeOf returns the outcome of an authorizer chain. An authorizer that decided and did not allow the verb denied it.
func outcomeOf(v verdict) fieldperm.Outcome {
	if !v.allowed && v.by != "" {
		return fieldperm.Deny
	}
	return fieldperm.OutcomeOf(v.allowed)
}

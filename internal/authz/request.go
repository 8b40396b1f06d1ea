package authz

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// forRequest asks about the object as the request named it (requestResource), because that is what the
// API server authorized.
func forRequest(chain *shared, req *admissionv1.AdmissionRequest) fieldperm.Authorizer {
	attributes := authorizer.AttributesRecord{
		Namespace: req.Namespace, Name: req.Name,
		APIGroup: req.Resource.Group, APIVersion: req.Resource.Version, Resource: req.Resource.Resource, Subresource: req.SubResource,
		ResourceRequest: true,
	}
	if sent := req.RequestResource; sent != nil {
		attributes.APIGroup, attributes.APIVersion, attributes.Resource, attributes.Subresource = sent.Group, sent.Version, sent.Resource, req.RequestSubResource
	}
	extra := make(map[string][]string, len(req.UserInfo.Extra))
	for key, values := range req.UserInfo.Extra {
		extra[key] = values
	}
	return newAsker(chain, attributes, req.UserInfo.Username, req.UserInfo.UID, req.UserInfo.Groups, extra)
}

// forReview leaves selectors out: granular verbs are about writes.
func forReview(chain *shared, spec *authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer {
	r := spec.ResourceAttributes
	attributes := authorizer.AttributesRecord{
		Namespace: r.Namespace, Name: r.Name,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		ResourceRequest: true,
	}
	extra := make(map[string][]string, len(spec.Extra))
	for key, values := range spec.Extra {
		extra[key] = values
	}
	return newAsker(chain, attributes, spec.User, spec.UID, spec.Groups, extra)
}

// asker knows who asks and about what; only the verb is left open.
type asker struct {
	chain      *shared
	attributes authorizer.AttributesRecord
	// granular and generic are the user as it is, and with the extra key of A4.
	granular, generic *user.DefaultInfo
}

func newAsker(chain *shared, attributes authorizer.AttributesRecord, name, uid string, groups []string, extra map[string][]string) *asker {
	marked := make(map[string][]string, len(extra)+1)
	for key, values := range extra {
		// A user that happens to have the key must not lose its granular verbs by it, nor may its
		// value stand in for ours. API servers lower the case of extra keys.
		if strings.EqualFold(key, admission.GenericOnlyKey) {
			delete(extra, key)
			continue
		}
		marked[key] = values
	}
	marked[admission.GenericOnlyKey] = []string{"true"}
	return &asker{
		chain:      chain,
		attributes: attributes,
		granular:   &user.DefaultInfo{Name: name, UID: uid, Groups: groups, Extra: extra},
		generic:    &user.DefaultInfo{Name: name, UID: uid, Groups: groups, Extra: marked},
	}
}

// Authorize asks for one verb. The reason is passed on as it is: Decide never counts an answer as
// generic whose reason is fieldperm's own (A4's second lock).
func (k *asker) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.Answer, error) {
	ctx, span := tracing.Start(ctx, "check", tracing.Verb(verb), tracing.Generic.Bool(generic))
	defer span.End()
	attributes := k.attributes
	attributes.Verb = verb
	attributes.User = k.granular
	if generic {
		attributes.User = k.generic
	}
	v, err := k.chain.ask(ctx, attributes)
	failure := cmp.Or(err, v.failure)
	span.SetAttributes(tracing.Result.String(resultOf(decisionOf(v), failure)))
	if failure != nil {
		failure = fmt.Errorf("authorizer: verb %q on %q: %w", verb, k.attributes.Resource, failure)
	}
	if err != nil {
		return fieldperm.Answer{}, failure
	}
	return fieldperm.Answer{Allowed: v.allowed, Reason: v.reason, By: v.by, Failure: failure}, nil
}

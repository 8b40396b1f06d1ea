package authz

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// forRequest returns an authorizer for the object as the request named it (requestResource), because the API server authorized that
// resource.
func forRequest(chain *flights, req *admissionv1.AdmissionRequest) fieldperm.Authorizer {
	r := admission.RequestedResource(req)
	attributes := authorizer.AttributesRecord{
		Namespace: req.Namespace, Name: req.Name,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		ResourceRequest: true,
	}
	u := &req.UserInfo
	return newRequestAuthorizer(chain, attributes, u.Username, u.UID, u.Groups, sortedExtra(u.Extra))
}

// forReview omits the selectors of the review: granular verbs are about writes.
func forReview(chain *flights, spec *authorizationv1.SubjectAccessReviewSpec) *requestAuthorizer {
	r := spec.ResourceAttributes
	attributes := authorizer.AttributesRecord{
		Namespace: r.Namespace, Name: r.Name,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		ResourceRequest: true,
	}
	return newRequestAuthorizer(chain, attributes, spec.User, spec.UID, spec.Groups, sortedExtra(spec.Extra))
}

// requestAuthorizer holds the user and the object of the checks. Authorize adds the verb.
type requestAuthorizer struct {
	chain *flights
	of    identity
}

func newRequestAuthorizer(chain *flights, attributes authorizer.AttributesRecord, name, uid string, groups []string, extra []extraValues) *requestAuthorizer {
	// A user whose own extra has the key must not lose granular verbs because of it, and the user's value must not replace
	// fieldperm's value. API servers change extra keys to lower case.
	extra = slices.DeleteFunc(extra, func(e extraValues) bool { return strings.EqualFold(e.key, admission.GenericOnlyKey) })
	out := &requestAuthorizer{chain: chain}
	out.of.set(attributes, name, uid, groups, extra)
	return out
}

// Authorize asks for one verb. It returns the authorizer's reason unchanged: Decide never counts an answer as generic if its reason
// has fieldperm's own prefix (A4's second lock).
func (a *requestAuthorizer) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	// A span costs as much as a check with a cached decision, so a span is started only if it is recorded.
	var span trace.Span
	if trace.SpanFromContext(ctx).IsRecording() {
		ctx, span = tracing.Start(ctx, "check", tracing.Verb(verb), tracing.Generic.Bool(generic))
		defer span.End()
	}
	v, err := a.chain.askCheck(ctx, check{identity: &a.of, verb: verb, generic: generic})
	failure := cmp.Or(err, v.failure)
	if span != nil {
		span.SetAttributes(tracing.Result.String(resultOf(decisionOf(v), failure)))
	}
	if failure != nil {
		failure = fmt.Errorf("authorizer: verb %q on %q: %w", verb, a.of.Resource, failure)
	}
	if err != nil {
		return fieldperm.AuthorizerDecision{}, failure
	}
	return fieldperm.AuthorizerDecision{Outcome: outcomeOf(v), Reason: v.reason, By: v.by, Skipped: v.skipped, Failure: failure}, nil
}

// outcomeOf returns the outcome of an authorizer chain. An authorizer that decided and did not allow the verb denied it.
func outcomeOf(v chainDecision) fieldperm.Outcome {
	if !v.allowed && v.by != "" {
		return fieldperm.Deny
	}
	return fieldperm.OutcomeOf(v.allowed)
}

// identity is the user and the object of a request: everything that the checks of one request share, except the verb. It is
// immutable.
type identity struct {
	// AttributesRecord describes the object. Its user and its verb are not set.
	authorizer.AttributesRecord

	user, uid string
	groups    []string
	// extra does not contain A4's key.
	extra []extraValues

	once    sync.Once
	written string
	// withoutVerb is a check that no cache decides.
	withoutVerb check

	// held are the decisions about the identity that a check has found in the caches, by their slots. An identity belongs to one chain.
	held [4]atomic.Pointer[decisions]
}

func (i *identity) set(attributes authorizer.AttributesRecord, name, uid string, groups []string, extra []extraValues) {
	i.AttributesRecord, i.user, i.uid, i.groups, i.extra = attributes, name, uid, groups, extra
	i.withoutVerb.identity = i
}

// attributes returns the question about a verb as the API server asks it, without A4's key.
func (i *identity) attributes(verb string) authorizer.AttributesRecord {
	a := i.AttributesRecord
	u := &user.DefaultInfo{Name: i.user, UID: i.uid, Groups: i.groups}
	for _, e := range i.extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[e.key] = e.values
	}
	a.User, a.Verb = u, verb
	return a
}

// text returns the part of the cache key that all checks of the request share. The first call computes it.
func (i *identity) text() string {
	i.once.Do(func() { i.written = string(i.appendTo(make([]byte, 0, 1024))) })
	return i.written
}

// appendTo appends text.
func (i *identity) appendTo(q []byte) []byte {
	return appendIdentity(q, i.withoutVerb.GetUser(), i.extra, &i.withoutVerb)
}

// check is a question about one verb, in the form that authorizers take.
type check struct {
	*identity
	verb string
	// generic is true for a check of the generic permission. The user's extra then has A4's key, and the cache key differs.
	generic bool
}

var _ authorizer.Attributes = &check{}

func (c *check) key() key { return key{identity: c.text(), verb: c.verb, generic: c.generic} }

// GetUser returns the author of the request.
func (c *check) GetUser() user.Info { return (*author)(c) }

// GetVerb returns the verb.
func (c *check) GetVerb() string { return c.verb }

// IsReadOnly reports whether the verb is read-only.
func (c *check) IsReadOnly() bool { return authorizer.AttributesRecord{Verb: c.verb}.IsReadOnly() }

// author is the user of a check.
type author check

// GetName returns the name.
func (a *author) GetName() string { return a.user }

// GetUID returns the UID.
func (a *author) GetUID() string { return a.uid }

// GetGroups returns the groups.
func (a *author) GetGroups() []string { return a.groups }

// GetExtra returns the user's own extra, plus A4's key for a check of the generic permission. Every call makes a new map: only
// authorizers that send a request over the network read it.
func (a *author) GetExtra() map[string][]string {
	extra := make(map[string][]string, len(a.extra)+1)
	for _, e := range a.extra {
		extra[e.key] = e.values
	}
	if a.generic {
		extra[admission.GenericOnlyKey] = []string{"true"}
	}
	return extra
}

// key is the cache key of a question. Two questions have the same key only if an authorizer cannot tell them apart.
type key struct {
	// identity is the text of the user and the object.
	identity string
	verb     string
	// generic is true if the user's extra has A4's key in addition to the keys in identity.
	generic bool
}

// keyOf returns the key of a question. A question with selectors is an error.
func keyOf(a authorizer.Attributes) (key, error) {
	if c, ok := a.(*check); ok {
		return c.key(), nil
	}
	fields, fieldsErr := a.GetFieldSelector()
	labels, labelsErr := a.GetLabelSelector()
	if len(fields) > 0 || len(labels) > 0 || fieldsErr != nil || labelsErr != nil {
		return key{}, fmt.Errorf("authorizer: question about %q has selectors: ask without", a.GetResource())
	}
	u := a.GetUser()
	if u == nil {
		u = &user.DefaultInfo{}
	}
	return key{identity: identityOf(u, sortedExtra(u.GetExtra()), a), verb: a.GetVerb()}, nil
}

// questionOf returns a key as one text. Two questions have the same text only if an authorizer cannot tell them apart.
func questionOf(a authorizer.Attributes) (string, error) {
	k, err := keyOf(a)
	if err != nil {
		return "", err
	}
	q := strconv.AppendBool(make(lengthed, 0, len(k.identity)+len(k.verb)+16), k.generic)
	return string(append(lengthed(q).texts(k.verb), k.identity...)), nil
}

// identityOf encodes all of a question except the verb. extra is the user's extra, sorted by key.
func identityOf(u user.Info, extra []extraValues, a authorizer.Attributes) string {
	return string(appendIdentity(make([]byte, 0, 1024), u, extra, a))
}

// longestIdentity is the length of the longest identity that is kept as it is. Of a longer one, of a user in many groups, its SHA-256 is kept:
// the caches hold thousands. No other identity begins with hashed.
const (
	longestIdentity = 512
	hashed          = '#'
)

func appendIdentity(to []byte, u user.Info, extra []extraValues, a authorizer.Attributes) []byte {
	q := lengthed(to).texts(u.GetName(), u.GetUID()).list(u.GetGroups())
	q = q.number(len(extra))
	for _, e := range extra {
		q = q.texts(e.key).list(e.values)
	}
	q = strconv.AppendBool(q, a.IsResourceRequest())
	q = q.texts(a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(), a.GetPath())
	if whole := q[len(to):]; len(whole) > longestIdentity {
		sum := sha256.Sum256(whole)
		return append(append(to, hashed), sum[:]...)
	}
	return q
}

// extraValues is one key of a user's extra with its values.
type extraValues struct {
	key    string
	values []string
}

// sortedExtra returns a user's extra, sorted by key.
func sortedExtra[V ~[]string](extra map[string]V) []extraValues {
	out := make([]extraValues, 0, len(extra))
	for key, values := range extra {
		out = append(out, extraValues{key, values})
	}
	slices.SortFunc(out, func(a, b extraValues) int { return strings.Compare(a.key, b.key) })
	return out
}

// lengthed encodes texts with a length before each text, so that different lists of texts never have the same encoding.
type lengthed []byte

func (q lengthed) number(n int) lengthed { return append(strconv.AppendInt(q, int64(n), 10), ':') }

func (q lengthed) texts(texts ...string) lengthed {
	for _, text := range texts {
		q = append(q.number(len(text)), text...)
	}
	return q
}

func (q lengthed) list(texts []string) lengthed { return q.number(len(texts)).texts(texts...) }

package authz

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	oteltrace "go.opentelemetry.io/otel/trace"
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
func forRequest(chain *snapshot, req *admissionv1.AdmissionRequest) *requestAuthorizer {
	r, u := admission.RequestedResource(req), &req.UserInfo
	return newRequestAuthorizer(chain, author{name: u.Username, uid: u.UID, groups: u.Groups, extra: ownExtra(u.Extra)}, &authorizationv1.ResourceAttributes{
		Namespace: req.Namespace, Name: req.Name,
		Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource,
	})
}

// forReview omits the verb and the selectors of the review: granular verbs are about writes.
func forReview(chain *snapshot, spec *authorizationv1.SubjectAccessReviewSpec) *requestAuthorizer {
	return newRequestAuthorizer(chain, author{name: spec.User, uid: spec.UID, groups: spec.Groups, extra: ownExtra(spec.Extra)}, spec.ResourceAttributes)
}

// requestAuthorizer holds the user and the object of the checks. Authorize adds the verb.
type requestAuthorizer struct {
	chain *snapshot
	question
}

// question is what the checks of one request share: all but the verb.
type question struct {
	authorizer.AttributesRecord // of the object
	user                        author
	// asks is the part of the key.
	asks [sha256.Size]byte
}

func newRequestAuthorizer(chain *snapshot, u author, r *authorizationv1.ResourceAttributes) *requestAuthorizer {
	return &requestAuthorizer{chain, question{user: u, asks: digest(&u, r), AttributesRecord: authorizer.AttributesRecord{
		Namespace: r.Namespace, Name: r.Name,
		APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		ResourceRequest: true,
	}}}
}

// Authorize asks for one verb. It returns the authorizer's reason unchanged: Decide never counts an answer as generic if its reason
// has fieldperm's own prefix (A4's second lock).
func (a *requestAuthorizer) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	// A span costs as much as a check with a cached decision, so a span is started only if it is recorded.
	var span oteltrace.Span
	if oteltrace.SpanFromContext(ctx).IsRecording() {
		ctx, span = tracing.Start(ctx, "check", tracing.Verb(verb), tracing.Generic.Bool(generic))
		defer span.End()
	}
	out, err := a.chain.ask(ctx, a.check(verb, generic))
	failure := cmp.Or(err, out.Failure)
	if span != nil {
		span.SetAttributes(tracing.Result.String(resultOf(out.Allowed(), failure)))
	}
	if failure != nil {
		failure = fmt.Errorf("authorizer: verb %q on %q: %w", verb, a.Resource, failure)
	}
	if err != nil {
		return fieldperm.AuthorizerDecision{}, failure
	}
	out.Failure = failure
	return out, nil
}

// check returns the question about one verb.
func (a *requestAuthorizer) check(verb string, generic bool) *check {
	return &check{question: &a.question, verb: verb, generic: generic}
}

// check is a question about one verb. Who asks the chain writes its trace, and nobody else reads it.
type check struct {
	*question
	verb string
	// generic is true for a check of the generic permission.
	generic bool
	trace
}

// GetUser returns the user, with A4's key in a check of the generic permission.
func (c *check) GetUser() user.Info {
	if c.generic {
		return genericAuthor{&c.user}
	}
	return &c.user
}

// GetVerb returns the verb.
func (c *check) GetVerb() string { return c.verb }

// IsReadOnly reports whether the verb is read-only.
func (c *check) IsReadOnly() bool { return authorizer.AttributesRecord{Verb: c.verb}.IsReadOnly() }

func (c *check) key() key { return key{c.asks, c.verb, c.generic} }

// key is the cache key of a question. Two questions have the same key only if an authorizer cannot tell them apart.
type key struct {
	// asks is the digest of the user and the object. Keys are short, whatever the groups of the user: the caches hold thousands.
	asks [sha256.Size]byte
	verb string
	// generic is true if the user's extra has A4's key.
	generic bool
}

// digest stands for all of a question except the verb and A4's key.
func digest(u *author, r *authorizationv1.ResourceAttributes) [sha256.Size]byte {
	q := make(lengthed, 0, 1024).texts(u.name, u.uid).list(u.groups).number(len(u.extra))
	for _, e := range u.extra {
		q = q.texts(e.key).list(e.values)
	}
	return sha256.Sum256(q.texts(r.Namespace, r.Group, r.Version, r.Resource, r.Subresource, r.Name))
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

// author is the user of a check.
type author struct {
	name, uid string
	groups    []string
	// extra does not have A4's key.
	extra []extraValues
}

var _ user.Info = &author{}

// GetName returns the name.
func (a *author) GetName() string { return a.name }

// GetUID returns the UID.
func (a *author) GetUID() string { return a.uid }

// GetGroups returns the groups.
func (a *author) GetGroups() []string { return a.groups }

// GetExtra returns the user's own extra. Every call makes a new map: only authorizers that send a request over the network read it.
func (a *author) GetExtra() map[string][]string {
	extra := make(map[string][]string, len(a.extra)+1)
	for _, e := range a.extra {
		extra[e.key] = e.values
	}
	return extra
}

// genericAuthor is the user of a check of the generic permission.
type genericAuthor struct{ *author }

// GetExtra returns the user's own extra and A4's key.
func (a genericAuthor) GetExtra() map[string][]string {
	extra := a.author.GetExtra()
	extra[admission.GenericOnlyKey] = []string{"true"}
	return extra
}

// extraValues is one key of a user's extra with its values.
type extraValues struct {
	key    string
	values []string
}

// ownExtra returns a user's extra, sorted by key, without A4's key: a user whose own extra has the key must not lose granular verbs because
// of it, and the user's value must not replace fieldperm's value. API servers change extra keys to lower case.
func ownExtra[V ~[]string](extra map[string]V) []extraValues {
	out := make([]extraValues, 0, len(extra))
	for key, values := range extra {
		if !strings.EqualFold(key, admission.GenericOnlyKey) {
			out = append(out, extraValues{key, values})
		}
	}
	slices.SortFunc(out, func(a, b extraValues) int { return strings.Compare(a.key, b.key) })
	return out
}

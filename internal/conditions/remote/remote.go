package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
	"github.com/fieldperm/fieldperm/internal/shorten"
)

// maxError is the longest error in bytes. A peer chooses the texts in it, and users see it.
const maxError = 1 << 10

// Config describes an authorizer.
type Config struct {
	// Name is the name of the authorizer in errors.
	Name    string
	Dialect wire.Dialect
	// Reviews connects to the endpoint of SubjectAccessReviews, Conditions to that of AuthorizationConditionsReviews.
	Reviews, Conditions *rest.Config
	// Timeout limits each of the two questions, with their retries.
	Timeout time.Duration
	// AuthorizedTTL is how long an Allow is cached, UnauthorizedTTL any other decision without conditions. 0 turns the cache off. Conditions
	// are cached with their decision, for the shorter of the two.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// OnError is the failure policy: DecisionDeny, which is the zero value, or DecisionNoOpinion. Every other value denies.
	OnError authorizer.Decision
	// Match reports whether the authorizer is asked about a request: if not, it has no opinion. A failure decides as the failure policy. nil asks
	// about every request.
	Match func(context.Context, *authorizationv1.SubjectAccessReview) (bool, error)
	// Clock is the time of the cache; nil for the real time.
	Clock cache.Clock
}

// Authorizer asks another program. It is safe for concurrent use.
type Authorizer struct {
	config              Config
	reviews, conditions *endpoint
	decisions           *decisionCache
	// asking has the questions that are being asked.
	asking singleflight.Group
}

var _ authorizer.Authorizer = &Authorizer{}

// New returns an Authorizer. It sends nothing.
func New(c Config) (*Authorizer, error) {
	if _, err := wire.Parse(string(c.Dialect)); err != nil {
		return nil, fmt.Errorf("authorizer %q: %w", c.Name, err)
	}
	if c.Timeout <= 0 || c.Reviews == nil || c.Conditions == nil {
		return nil, fmt.Errorf("authorizer %q: lacks a timeout or an endpoint: configure both endpoints and a timeout", c.Name)
	}
	if c.OnError != authorizer.DecisionNoOpinion {
		c.OnError = authorizer.DecisionDeny
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	a := &Authorizer{config: c, decisions: newDecisionCache(c.Clock)}
	var err error
	if a.reviews, err = newEndpoint(c.Reviews, c.Timeout, c.Clock); err != nil {
		return nil, fmt.Errorf("authorizer %q: reviews: %w", c.Name, err)
	}
	if a.conditions, err = newEndpoint(c.Conditions, c.Timeout, c.Clock); err != nil {
		return nil, fmt.Errorf("authorizer %q: conditions: %w", c.Name, err)
	}
	return a, nil
}

// Authorize is for callers that do not handle conditions: a decision that needs them is NoOpinion, or Deny if it may deny.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	d := a.ConditionsAwareAuthorize(ctx, attributes)
	if d.IsUnconditional() {
		return unconditional(d)
	}
	return wire.FailureDecision(d), "", wire.Failure(d)
}

// ConditionsAwareAuthorize asks for the decision on a request, unless the cache has it.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	spec, err := specOf(attributes)
	if err != nil {
		return a.failed(err)
	}
	body, err := a.config.Dialect.Ask(spec)
	if err != nil {
		return a.failed(err)
	}
	key := string(body)
	if d, ok := a.decisions.get(key); ok {
		return d
	}
	if a.config.Match != nil {
		matches, err := a.config.Match(ctx, &authorizationv1.SubjectAccessReview{Spec: *spec})
		if err != nil {
			return a.failed(err)
		}
		if !matches {
			return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
		}
	}
	// The question goes on, within its timeout, when the first caller leaves: one client that disconnects must not fail the request of another.
	answered := a.asking.DoChan(key, func() (any, error) { return a.question(context.WithoutCancel(ctx), spec, body) })
	select {
	case <-ctx.Done():
		return a.failed(ctx.Err())
	case result := <-answered:
		d, ok := result.Val.(authorizer.ConditionsAwareDecision)
		if result.Err != nil || !ok {
			return a.failed(cmp.Or(result.Err, errors.New("has no answer")))
		}
		return d
	}
}

// question asks for a decision, and caches it. A panic is an error: singleflight would panic again where nothing can recover.
func (a *Authorizer) question(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec, body []byte) (d authorizer.ConditionsAwareDecision, err error) {
	defer func() {
		if r := recover(); r != nil {
			d, err = authorizer.ConditionsAwareDecision{}, fmt.Errorf("panicked: %v", r)
		}
	}()
	about, err := aboutOf(spec)
	if err != nil {
		return d, err
	}
	answer, err := a.reviews.post(ctx, about, body)
	if err != nil {
		return d, err
	}
	if err := echoes(answer, spec); err != nil {
		return d, err
	}
	d, err = a.config.Dialect.ReadStatus(answer)
	// A decision with an error is not kept: the authorizer may be able to decide the next time.
	if err == nil && d.Error() == nil && wire.Failure(d) == nil {
		a.decisions.put(string(body), d, len(answer), a.ttl(d))
	}
	return d, err
}

func (a *Authorizer) ttl(d authorizer.ConditionsAwareDecision) time.Duration {
	switch {
	case d.IsAllow():
		return a.config.AuthorizedTTL
	case d.IsUnconditional():
		return a.config.UnauthorizedTTL
	}
	return min(a.config.AuthorizedTTL, a.config.UnauthorizedTTL)
}

// failed is the decision of the authorization phase on a failure.
func (a *Authorizer) failed(err error) authorizer.ConditionsAwareDecision {
	err = a.named(err)
	if a.config.OnError == authorizer.DecisionNoOpinion {
		return authorizer.ConditionsAwareDecisionNoOpinion("", err)
	}
	return authorizer.ConditionsAwareDecisionDeny("", err)
}

// named returns an error with the name of the authorizer.
func (a *Authorizer) named(err error) error {
	return brief{fmt.Errorf("authorizer %q: %w", a.config.Name, err)}
}

// brief is an error with a short text.
type brief struct{ error }

// Error returns the beginning of the text.
func (b brief) Error() string { return shorten.Within(b.error.Error(), maxError) }

// Unwrap returns the whole error.
func (b brief) Unwrap() error { return b.error }

// specOf returns the question about attributes.
func specOf(a authorizer.Attributes) (*authorizationv1.SubjectAccessReviewSpec, error) {
	var u user.Info = &user.DefaultInfo{}
	if is := a.GetUser(); is != nil {
		u = is
	}
	if u.GetName() == "" && len(u.GetGroups()) == 0 {
		return nil, errors.New("the request names no user")
	}
	out := &authorizationv1.SubjectAccessReviewSpec{User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authorizationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	if !a.IsResourceRequest() {
		out.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
		return out, nil
	}
	out.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
		Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
	}
	return out, nil
}

// aboutOf returns the user and the object of a question: all of it but the verb.
func aboutOf(of *authorizationv1.SubjectAccessReviewSpec) (string, error) {
	without := *of
	if of.ResourceAttributes != nil {
		attributes := *of.ResourceAttributes
		attributes.Verb = ""
		without.ResourceAttributes = &attributes
	}
	text, err := wire.None.Ask(&without)
	return string(text), err
}

// echoes returns an error if an answer has another question than the one that was asked. An authorizer may leave the question out.
func echoes(answer []byte, asked *authorizationv1.SubjectAccessReviewSpec) error {
	spec, err := wire.Asked(answer)
	switch {
	case err != nil:
		return err
	case spec == nil:
		return nil
	case !maps.EqualFunc(spec.Extra, asked.Extra, slices.Equal):
		return fmt.Errorf("answers about user %q with another extra than it was asked about", spec.User)
	case spec.User != asked.User || spec.UID != asked.UID || len(spec.Groups)+len(asked.Groups) > 0 && !reflect.DeepEqual(spec.Groups, asked.Groups):
		return fmt.Errorf("answers about user %q, and was asked about %q", spec.User, asked.User)
	case !reflect.DeepEqual(spec.ResourceAttributes, asked.ResourceAttributes) || !reflect.DeepEqual(spec.NonResourceAttributes, asked.NonResourceAttributes):
		return errors.New("answers about another request than it was asked about")
	}
	return nil
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

const (
	// cacheSize is the largest number of decisions in the cache, as in k8s.io/apiserver.
	cacheSize = 8192
	// longestCached is the largest review in bytes whose decision is cached. Users choose the texts in it.
	longestCached = 10000
)

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

// Data is the input of conditions with the request as the API server sent it.
type Data interface {
	authorizer.ConditionsData
	Request() *admissionv1.AdmissionRequest
}

// Authorizer asks another program. It is safe for concurrent use.
type Authorizer struct {
	config              Config
	reviews, conditions *webhook.GenericWebhook
	decisions           *cache.LRUExpireCache
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
	a := &Authorizer{config: c, decisions: cache.NewLRUExpireCacheWithClock(cacheSize, c.Clock)}
	var err error
	if a.reviews, err = endpoint(c.Reviews); err != nil {
		return nil, fmt.Errorf("authorizer %q: reviews: %w", c.Name, err)
	}
	if a.conditions, err = endpoint(c.Conditions); err != nil {
		return nil, fmt.Errorf("authorizer %q: conditions: %w", c.Name, err)
	}
	return a, nil
}

// endpoint returns a client of k8s.io/apiserver for one address.
func endpoint(of *rest.Config) (*webhook.GenericWebhook, error) {
	config := rest.CopyConfig(of)
	config.ContentConfig = rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}
	config.QPS, config.RateLimiter = -1, nil
	config.Wrap(limit)
	scheme := runtime.NewScheme()
	// The steps are short because a user's request waits for the retries.
	retry := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}
	return webhook.NewGenericWebhook(scheme, serializer.NewCodecFactory(scheme), config, nil, retry)
}

// Authorize is for callers that do not handle conditions: a decision that needs them is NoOpinion, or Deny if it may deny.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	d := a.ConditionsAwareAuthorize(ctx, attributes)
	switch {
	case d.IsAllow():
		return authorizer.DecisionAllow, d.Reason(), d.Error()
	case d.IsDeny():
		return authorizer.DecisionDeny, d.Reason(), d.Error()
	case d.IsNoOpinion():
		return authorizer.DecisionNoOpinion, d.Reason(), d.Error()
	}
	return d.FailureDecision(), "", d.Error()
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
	if cached, ok := a.decisions.Get(key); ok {
		if d, ok := cached.(authorizer.ConditionsAwareDecision); ok {
			return d
		}
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
	answer, err := a.post(ctx, a.reviews, body)
	if err != nil {
		return a.failed(err)
	}
	if err := echoes(answer, spec); err != nil {
		return a.failed(err)
	}
	d, err := a.config.Dialect.ReadStatus(answer)
	if err != nil {
		return a.failed(err)
	}
	// A decision with an error is not kept: the authorizer may be able to decide the next time.
	if ttl := a.ttl(d); ttl > 0 && d.Error() == nil && len(key) < longestCached {
		// In LRUExpireCache a decision is still valid at the end of its time. Here it has expired then.
		a.decisions.Add(key, d, ttl-time.Nanosecond)
	}
	return d
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

// EvaluateConditions asks what a decision of this authorizer becomes with the objects. data must be Data. Decisions are asked about as they
// were returned. A failure decides as the failure policy, and denies also if one of the conditions may deny.
func (a *Authorizer) EvaluateConditions(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData,
) (authorizer.Decision, string, error) {
	of, ok := data.(Data)
	if !ok {
		return a.unevaluated(decision, errNoRequest)
	}
	return a.Evaluate(ctx, decision, of.Request())
}

var errNoRequest = errors.New("the request in admission is not known, or the API server has converted its objects: take versions out of the rules of the webhook")

// Evaluate is EvaluateConditions with the request in admission, nil if it is not known. A request without a UID, as of a review that is not a write, gets one. An
// unconditional decision is returned as it is.
func (a *Authorizer) Evaluate(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, of *admissionv1.AdmissionRequest,
) (authorizer.Decision, string, error) {
	switch {
	case decision.IsAllow():
		return authorizer.DecisionAllow, decision.Reason(), decision.Error()
	case decision.IsNoOpinion():
		return authorizer.DecisionNoOpinion, decision.Reason(), decision.Error()
	case decision.IsDeny():
		return authorizer.DecisionDeny, decision.Reason(), decision.Error()
	case of == nil:
		return a.unevaluated(decision, errNoRequest)
	case of.UID == "":
		copied := *of
		copied.UID = uuid.NewUUID()
		of = &copied
	}
	answer, err := a.evaluate(ctx, decision, of)
	if err != nil {
		return a.unevaluated(decision, err)
	}
	switch {
	case answer.IsAllow():
		return authorizer.DecisionAllow, answer.Reason(), answer.Error()
	case answer.IsNoOpinion() && answer.Error() == nil:
		return authorizer.DecisionNoOpinion, answer.Reason(), nil
	case answer.IsNoOpinion():
		// The authorizer could not evaluate a condition, which may be one that denies.
		return decision.FailureDecision(), answer.Reason(), answer.Error()
	}
	return authorizer.DecisionDeny, answer.Reason(), answer.Error()
}

// evaluate returns a decision without conditions. A review of the first text has the conditions of one authorizer, so a chain is asked one
// authorizer after the other.
func (a *Authorizer) evaluate(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, of *admissionv1.AdmissionRequest,
) (authorizer.ConditionsAwareDecision, error) {
	if a.config.Dialect != wire.ConditionsChain || !decision.IsUnion() {
		return a.ask(ctx, decision, of)
	}
	var reasons []string
	for name, inner := range decision.UnionedDecisions() {
		if !inner.IsUnconditional() {
			var err error
			var one authorizer.ConditionsAwareDecisionUnion
			one.Add(name, inner)
			if inner, err = a.ask(ctx, one.ToDecision(), of); err != nil {
				return authorizer.ConditionsAwareDecision{}, err
			}
		}
		if !inner.IsNoOpinion() || inner.Error() != nil {
			return inner, nil
		}
		if inner.Reason() != "" {
			reasons = append(reasons, inner.Reason())
		}
	}
	return authorizer.ConditionsAwareDecisionNoOpinion(strings.Join(reasons, "\n"), nil), nil
}

func (a *Authorizer) ask(
	ctx context.Context, decision authorizer.ConditionsAwareDecision, of *admissionv1.AdmissionRequest,
) (authorizer.ConditionsAwareDecision, error) {
	body, err := a.config.Dialect.AskConditions(wire.ConditionsRequest{Decision: decision, Admission: of})
	if err != nil {
		return authorizer.ConditionsAwareDecision{}, err
	}
	answer, err := a.post(ctx, a.conditions, body)
	if err != nil {
		return authorizer.ConditionsAwareDecision{}, err
	}
	return a.config.Dialect.ReadConditionsAnswer(answer, of.UID)
}

func (a *Authorizer) post(ctx context.Context, to *webhook.GenericWebhook, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	result := to.WithExponentialBackoff(ctx, func() rest.Result { return to.RestClient.Post().Body(body).Do(ctx) })
	return result.Raw()
}

// failed is the decision of the authorization phase on a failure.
func (a *Authorizer) failed(err error) authorizer.ConditionsAwareDecision {
	err = fmt.Errorf("authorizer %q: %w", a.config.Name, err)
	if a.config.OnError == authorizer.DecisionNoOpinion {
		return authorizer.ConditionsAwareDecisionNoOpinion("", err)
	}
	return authorizer.ConditionsAwareDecisionDeny("", err)
}

// unevaluated is the decision of admission on a failure.
func (a *Authorizer) unevaluated(decision authorizer.ConditionsAwareDecision, err error) (authorizer.Decision, string, error) {
	err = fmt.Errorf("authorizer %q: the conditions are not evaluated: %w", a.config.Name, err)
	if a.config.OnError == authorizer.DecisionNoOpinion && decision.FailureDecision() == authorizer.DecisionNoOpinion {
		return authorizer.DecisionNoOpinion, "", err
	}
	return authorizer.DecisionDeny, "", err
}

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

// echoes returns an error if an answer has another question than the one that was asked. An authorizer may leave the question out.
func echoes(answer []byte, asked *authorizationv1.SubjectAccessReviewSpec) error {
	spec, err := wire.Asked(answer)
	switch {
	case err != nil:
		return err
	case spec == nil:
		return nil
	case spec.User != asked.User || spec.UID != asked.UID || len(spec.Groups)+len(asked.Groups) > 0 && !reflect.DeepEqual(spec.Groups, asked.Groups):
		return fmt.Errorf("answers about user %q, and was asked about %q", spec.User, asked.User)
	case !reflect.DeepEqual(spec.ResourceAttributes, asked.ResourceAttributes) || !reflect.DeepEqual(spec.NonResourceAttributes, asked.NonResourceAttributes):
		return errors.New("answers about another request than it was asked about")
	}
	return nil
}

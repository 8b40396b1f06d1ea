package authz

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/metrics"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	peer "github.com/fieldperm/fieldperm/internal/conditions/remote"
	"github.com/fieldperm/fieldperm/internal/configfile"
)

// conditional is a webhook that returns conditions. It is asked before the authorizers of the chain that return none.
type conditional struct {
	// Authorizer counts decisions in the metrics of k8s.io/apiserver.
	authorizer.Authorizer
	name   string
	remote *peer.Authorizer
}

func newConditional(one *apiserver.AuthorizerConfiguration, of *configfile.Conditions, compiler authorizationcel.Compiler) (*conditional, error) {
	reviews, err := connection(&one.Webhook.ConnectionInfo, nil)
	if err != nil {
		return nil, err
	}
	conditions, err := inContext(*one.Webhook.ConnectionInfo.KubeConfigFile, of.Context)
	if err != nil {
		return nil, err
	}
	config := peer.Config{Name: one.Name, Dialect: of.Dialect, Reviews: reviews, Conditions: conditions, Timeout: one.Webhook.Timeout.Duration}
	if one.Webhook.CacheAuthorizedRequests {
		config.AuthorizedTTL = one.Webhook.AuthorizedTTL.Duration
	}
	if one.Webhook.CacheUnauthorizedRequests {
		config.UnauthorizedTTL = one.Webhook.UnauthorizedTTL.Duration
	}
	// Fail closed: every failurePolicy except NoOpinion denies.
	if one.Webhook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		config.OnError = authorizer.DecisionNoOpinion
	} else {
		config.OnError = authorizer.DecisionDeny
	}
	if len(one.Webhook.MatchConditions) > 0 {
		matcher, faults := validation.ValidateAndCompileMatchConditions(compiler, one.Webhook.MatchConditions)
		if len(faults) > 0 {
			return nil, faults.ToAggregate()
		}
		config.Match = matcher.Eval
	}
	out := &conditional{name: one.Name}
	if out.remote, err = peer.New(config); err != nil {
		return nil, err
	}
	out.Authorizer = metrics.InstrumentedAuthorizer(string(one.Type), one.Name, out.remote)
	return out, nil
}

// inContext returns the connection of a context of a kubeconfig. Its TLS files are read once, as those of connection.
func inContext(file, name string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{CurrentContext: name},
	).ClientConfig()
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: context %q: %w", file, name, err)
	}
	return config, nil
}

// ConditionsAwareAuthorize asks the webhook. Members of system:masters are allowed by an authorizer that precedes each chain, so a webhook is not
// asked about them.
func (c *conditional) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	if u := a.GetUser(); u != nil && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	return c.Authorizer.ConditionsAwareAuthorize(ctx, a)
}

// Conditional returns the webhooks of the chain in force that return conditions, in their order. They are for the authorization phase.
func (c *Chain) Conditional() []union.NamedAuthorizer {
	var out []union.NamedAuthorizer
	for _, one := range c.current.Load().conditionals {
		out = append(out, union.NamedAuthorizer{AuthorizerName: one.name, Authorizer: one})
	}
	return out
}

// Conditions returns what these webhooks decide on a write, nil if there are none. of is the authorizer that For returned for the request of the
// write, so that one configuration decides the whole review.
func Conditions(of fieldperm.Authorizer, write *admission.Write) admission.Conditions {
	r, ok := of.(*requestAuthorizer)
	if !ok || len(r.chain.conditionals) == 0 {
		return nil
	}
	return &onWrite{webhooks: r.chain.conditionals, of: &r.of, request: write.Request, answers: map[string]fieldperm.AuthorizerDecision{}}
}

// onWrite asks webhooks that return conditions about one request in admission.
type onWrite struct {
	webhooks []*conditional
	of       *identity
	request  *admissionv1.AdmissionRequest

	mu      sync.Mutex
	answers map[string]fieldperm.AuthorizerDecision
	unmet   []fieldperm.Unmet
}

// Authorize asks for one verb, and evaluates its conditions. A decision of the authorization phase that a webhook's cache still holds is used as
// it was.
func (w *onWrite) Authorize(ctx context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	w.mu.Lock()
	known, ok := w.answers[verb]
	w.mu.Unlock()
	if ok {
		return known, nil
	}
	answer, unmet, err := w.ask(ctx, verb)
	if err == nil {
		// The end of the context makes questions fail. Their outcome does not count.
		err = ctx.Err()
	}
	if err != nil {
		return fieldperm.AuthorizerDecision{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[verb] = answer
	for _, one := range unmet {
		if !slices.Contains(w.unmet, one) {
			w.unmet = append(w.unmet, one)
		}
	}
	return answer, nil
}

// Unmet returns the conditions that would have allowed a verb that was asked for and not allowed.
func (w *onWrite) Unmet() []fieldperm.Unmet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.unmet)
}

func (w *onWrite) ask(ctx context.Context, verb string) (fieldperm.AuthorizerDecision, []fieldperm.Unmet, error) {
	attributes := w.attributes(verb)
	out := fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}
	var unmet []fieldperm.Unmet
	for _, one := range w.webhooks {
		decision := one.ConditionsAwareAuthorize(ctx, attributes)
		outcome, reason, err := one.remote.Evaluate(ctx, decision, w.seen())
		switch outcome {
		case authorizer.DecisionAllow:
			return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: reason, By: one.name}, nil, nil
		case authorizer.DecisionNoOpinion:
			if out.Failure == nil && err != nil {
				out.Failure = fmt.Errorf("verb %q on %q: %w", verb, w.of.Resource, err)
			}
			for c := range allows(decision) {
				unmet = append(unmet, fieldperm.Unmet{Name: c.GetID(), Authorizer: one.name, Description: c.GetDescription()})
			}
		default:
			if err != nil {
				// An error is not a denial (P4).
				return fieldperm.AuthorizerDecision{}, nil, fmt.Errorf("verb %q on %q: %w", verb, w.of.Resource, err)
			}
			return fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: reason, By: one.name}, nil, nil
		}
	}
	return out, unmet, nil
}

// seen returns the request, nil if the API server has converted its objects: an authorizer gives conditions for the version of the request.
func (w *onWrite) seen() *admissionv1.AdmissionRequest {
	if w.request.RequestKind != nil && *w.request.RequestKind != w.request.Kind {
		return nil
	}
	return w.request
}

// attributes are those of the authorization phase, so that the caches of webhooks have the decisions. An API server knows no name then if the
// request creates an object.
func (w *onWrite) attributes(verb string) authorizer.Attributes {
	a := w.of.AttributesRecord
	u := &user.DefaultInfo{Name: w.of.user, UID: w.of.uid, Groups: w.of.groups}
	for _, e := range w.of.extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[e.key] = e.values
	}
	a.User, a.Verb = u, verb
	if w.request.Operation == admissionv1.Create && a.Subresource == "" {
		a.Name = ""
	}
	return a
}

// allows are the conditions of a decision with the effect Allow.
func allows(d authorizer.ConditionsAwareDecision) iter.Seq[authorizer.Condition] {
	return func(yield func(authorizer.Condition) bool) {
		switch {
		case d.IsConditionsMap():
			for c := range d.ConditionsMap().AllowConditions() {
				if !yield(c) {
					return
				}
			}
		case d.IsUnion():
			for _, inner := range d.UnionedDecisions() {
				for c := range allows(inner) {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

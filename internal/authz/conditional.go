package authz

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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
		config.Match = func(ctx context.Context, review *authorizationv1.SubjectAccessReview) (bool, error) {
			matches, err := matcher.Eval(ctx, review)
			callOf(ctx).skipped = !matches && err == nil
			return matches, err
		}
	}
	out := &conditional{name: one.Name}
	if out.remote, err = peer.New(config); err != nil {
		return nil, err
	}
	out.Authorizer = newCounting(string(one.Type), one.Name, out.remote)
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
	if isPrivileged(a.GetUser()) {
		return authorizer.ConditionsAwareDecisionNoOpinion("", nil)
	}
	return c.Authorizer.ConditionsAwareAuthorize(ctx, a)
}

// Authorize asks the webhook for a caller without an object: conditions that may deny are a Deny, and others no opinion.
func (c *conditional) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if isPrivileged(a.GetUser()) {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return c.Authorizer.Authorize(ctx, a)
}

func isPrivileged(u user.Info) bool {
	return u != nil && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}

// Conditional returns the webhooks of the chain in force that return conditions, in their order. They are for the authorization phase.
func (c *Chain) Conditional() []union.NamedAuthorizer {
	var out []union.NamedAuthorizer
	for _, one := range c.current.Load().conditionals {
		out = append(out, union.NamedAuthorizer{AuthorizerName: one.name, Authorizer: one})
	}
	return out
}

// Holds asks the whole chain whether a user holds a generic verb, where no object decides: first the webhooks that return conditions, then the
// others. Conditions count as not met, and as met if they may deny. The spec must have resource attributes.
func (c *Chain) Holds(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec, verb string) (fieldperm.AuthorizerDecision, error) {
	chain := c.current.Load()
	then := forReview(chain, spec)
	var failed error
	for _, one := range chain.conditionals {
		switch decision, reason, err := one.Authorize(ctx, then.check(verb, false)); decision {
		case authorizer.DecisionAllow:
			return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: reason, By: one.name}, nil
		case authorizer.DecisionNoOpinion:
			failed = cmp.Or(failed, err)
		default:
			return fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: reason, By: one.name, Failure: cmp.Or(err, failed)}, nil
		}
	}
	out, err := then.Authorize(ctx, verb, true)
	if !out.AllowsGeneric() {
		out.Failure = cmp.Or(out.Failure, failed)
	}
	return out, err
}

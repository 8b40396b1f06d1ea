package authz

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

const (
	// healthCheckUser is the user in the reviews that check whether a webhook answers. No real user has this name.
	healthCheckUser = "fieldperm:health-check"

	cureUnhealthy = "see that it is up, or correct its connectionInfo"
)

// endpoint is where a webhook must answer. A webhook that returns conditions has two.
type endpoint struct {
	// index is the position of the webhook in the configuration, field the setting below it that says where the endpoint is.
	index int
	field string
	// fault begins the message about an endpoint that does not answer, cure ends it.
	fault, cure string
	// ask sends one review, within the timeout of the webhook, and without match conditions and retries. The decision does not matter.
	ask func(context.Context) error
}

// endpoint returns where a webhook answers SubjectAccessReviews.
func (w *webhook) endpoint() endpoint {
	return endpoint{w.index, "webhook", fmt.Sprintf("authorizer %q does not answer", w.name), cureUnhealthy, w.healthy}
}

// healthy sends one review to the webhook and ignores its match conditions. Any decision counts as healthy; only errors are
// returned.
func (w *webhook) healthy(ctx context.Context) error {
	_, _, err := w.probe.Authorize(ctx, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: healthCheckUser}, Verb: "get", APIGroup: "fieldperm.dev", Resource: "healthchecks", ResourceRequest: true,
	})
	if i := (*inconclusive)(nil); errors.As(err, &i) {
		return nil // The webhook answers. The authorizer that failed is not in this chain.
	}
	return err
}

// endpoint returns where a webhook evaluates its conditions.
func (c *conditional) endpoint(of *configfile.Conditions) endpoint {
	return endpoint{
		of.Index, "webhook." + configfile.ConditionsContext, fmt.Sprintf("authorizer %q does not evaluate conditions in the dialect %s", c.name, of.Dialect),
		"see that it is up, or correct the server of this context, or " + configfile.ConditionsDialect,
		func(ctx context.Context) error { return c.remote.Probe(ctx, healthCheckUser) },
	}
}

// endpoints are those of the webhooks of a configuration, in its order.
type endpoints []endpoint

// ask asks all endpoints in parallel. It returns one error for each endpoint, nil for a healthy one.
func (e endpoints) ask(ctx context.Context) []error {
	errs := make([]error, len(e))
	var asking sync.WaitGroup
	for i := range e {
		asking.Go(func() { errs[i] = e[i].ask(ctx) })
	}
	asking.Wait()
	return errs
}

// problems reports the endpoints that did not answer. errs is the result of ask.
func (e endpoints) problems(of *configfile.Authorization, errs []error) configfile.Problems {
	var out configfile.Problems
	for i, err := range errs {
		if err != nil {
			out = append(out, of.Problem(e[i].index, e[i].field, fmt.Sprintf("%s: %v", e[i].fault, err), e[i].cure))
		}
	}
	return out
}

// Probe asks the webhooks of a chain that is not in force. It returns a Problem for each endpoint that does not answer with a review.
// cluster is the connection for connectionInfo.type InClusterConfig.
func Probe(ctx context.Context, chain *configfile.Authorization, cluster *rest.Config) []error {
	var all endpoints
	var out configfile.Problems
	compiler := authorizationcel.NewDefaultCompiler()
	for i := range chain.Configuration.Authorizers {
		one := &chain.Configuration.Authorizers[i]
		if one.Type != apiserver.TypeWebhook {
			continue
		}
		w, err := newWebhook(i, one, cluster, compiler)
		if err != nil {
			out = append(out, chain.Problem(i, "webhook", fmt.Sprintf("authorizer %q: %v", one.Name, err), ""))
			continue
		}
		all = append(all, w.endpoint())
		conditions := chain.ConditionsOf(i)
		if conditions == nil {
			continue
		}
		with, err := newConditional(one, conditions, compiler)
		if err != nil {
			out = append(out, chain.Problem(i, "webhook", fmt.Sprintf("authorizer %q: %v", one.Name, err), ""))
			continue
		}
		all = append(all, with.endpoint(conditions))
	}
	return append(out, all.problems(chain, all.ask(ctx))...).Unwrap()
}

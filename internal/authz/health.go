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
	// healthCheckUser is the user in the review that checks whether a webhook answers. No real user has this name.
	healthCheckUser = "fieldperm:health-check"

	cureUnhealthy = "see that it is up, or correct its connectionInfo"
)

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

// askAll asks all webhooks in parallel, each within its own timeout. It returns one error for each webhook, nil for a healthy one.
func askAll(ctx context.Context, webhooks []*webhook) []error {
	errs := make([]error, len(webhooks))
	var asking sync.WaitGroup
	for i, w := range webhooks {
		asking.Go(func() { errs[i] = w.healthy(ctx) })
	}
	asking.Wait()
	return errs
}

// Probe asks the webhooks of a chain that is not in force. It returns an error for each webhook that does not answer with a review.
// cluster is the connection for connectionInfo.type InClusterConfig.
func Probe(ctx context.Context, chain *configfile.Authorization, cluster *rest.Config) []error {
	var webhooks []*webhook
	var out []error
	compiler := authorizationcel.NewDefaultCompiler()
	for i := range chain.Configuration.Authorizers {
		one := &chain.Configuration.Authorizers[i]
		if one.Type != apiserver.TypeWebhook {
			continue
		}
		w, err := newWebhook(i, one, cluster, compiler)
		if err != nil {
			out = append(out, fmt.Errorf("authorizer %q: %w", one.Name, err))
			continue
		}
		webhooks = append(webhooks, w)
	}
	for i, err := range askAll(ctx, webhooks) {
		if err != nil {
			out = append(out, fmt.Errorf("authorizer %q: does not answer: %w: %s", webhooks[i].name, err, cureUnhealthy))
		}
	}
	return out
}

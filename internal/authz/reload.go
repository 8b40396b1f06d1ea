package authz

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	configmetrics "k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

// apply puts the current content of the file in force if all of these hold: the file is valid, the parts that cannot change are
// unchanged, and every webhook answers. Contents with the same meaning as before still make a new generation with empty caches.
func (c *Chain) apply(ctx context.Context, data []byte) ([]string, error) {
	loaded, err := configfile.LoadAuthorization(c.settings.File, data)
	if err != nil {
		return nil, err
	}
	if problems := c.changed(loaded.Configuration, data); len(problems) > 0 {
		return nil, problems
	}
	next, err := c.newGeneration(loaded.Configuration, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.settings.File, err)
	}
	errs := askAll(ctx, next.webhooks)
	if problems := c.unhealthy(next, errs); len(problems) > 0 {
		if !c.noWorse(ctx, next, errs) {
			return nil, problems
		}
		klog.FromContext(ctx).Info("Authorization configuration: a webhook still does not answer", "problem", problems.Error())
	}
	c.current.Store(next)
	report(klog.FromContext(ctx), c.settings.File, loaded)
	return loaded.Files, nil
}

// changed finds authorizers that are not webhooks and that were added or removed (KEP-3221). Changing their order is allowed.
func (c *Chain) changed(next *apiserver.AuthorizationConfiguration, data []byte) configfile.Problems {
	before := c.current.Load().configuration
	var out configfile.Problems
	for _, kind := range []apiserver.AuthorizerType{configfile.TypeRBAC, configfile.TypeNode} {
		switch had, has := has(before, kind), has(next, kind); {
		case has && !had:
			i := slices.IndexFunc(next.Authorizers, func(one apiserver.AuthorizerConfiguration) bool { return one.Type == kind })
			out = append(out, c.problem(data, i, "type", fmt.Sprintf("%s was not there at start, and is not added by a reload", kind), "restart fieldperm, or leave it out"))
		case had && !has:
			out = append(out, c.problem(data, -1, "", fmt.Sprintf("%s was there at start, and is not dropped by a reload", kind), "restart fieldperm, or put it back"))
		}
	}
	return out
}

// unhealthy reports the webhooks that did not answer. errs is the result of askAll.
func (c *Chain) unhealthy(g *generation, errs []error) configfile.Problems {
	var out configfile.Problems
	for i, err := range errs {
		if w := g.webhooks[i]; err != nil {
			out = append(out, c.problem(g.data, w.index, "webhook", fmt.Sprintf("authorizer %q does not answer: %v", w.name, err), cureUnhealthy))
		}
	}
	return out
}

// noWorse reports whether only files that the configuration names have changed, and every webhook that does not answer now does not
// answer in the chain in force either. One webhook that is down must not block the rotation of another webhook's certificates.
func (c *Chain) noWorse(ctx context.Context, next *generation, errs []error) bool {
	before := c.current.Load()
	if !bytes.Equal(before.data, next.data) {
		return false
	}
	for i, err := range askAll(ctx, before.webhooks) {
		if err == nil && errs[i] != nil {
			return false
		}
	}
	return true
}

// askAtStart logs the webhooks that do not answer. The chain is in force all the same: a webhook may wait for fieldperm to start,
// so waiting for the webhook would be a deadlock.
func (c *Chain) askAtStart(ctx context.Context) {
	g := c.current.Load()
	for _, problem := range c.unhealthy(g, askAll(ctx, g.webhooks)) {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("Authorization configuration: a webhook does not answer yet, and its failurePolicy decides until it does", "problem", problem.Error())
		}
	}
}

func (c *Chain) observe(log klog.Logger, data []byte, err error) {
	if err != nil {
		configmetrics.RecordAuthorizationConfigAutomaticReloadFailure(c.settings.Identity)
		log.Error(err, "Authorization configuration: what was in force stays", "file", c.settings.File)
		return
	}
	configmetrics.RecordAuthorizationConfigAutomaticReloadSuccess(c.settings.Identity, string(data))
}

// report logs the configuration that is in force now.
func report(log klog.Logger, file string, loaded *configfile.Authorization) {
	for _, warning := range loaded.Warnings {
		log.Info("Authorization configuration: warning", "warning", warning)
	}
	log.Info("Authorization configuration: is in force", "file", file, "authorizers", configfile.SummaryOfChain(loaded.Configuration))
}

// problem returns a Problem about a field of the authorizer at index. If no authorizer has this index, it is about the whole list.
func (c *Chain) problem(data []byte, index int, field, message, cure string) configfile.Problem {
	key := "authorizers"
	if index >= 0 {
		key = fmt.Sprintf("authorizers[%d].%s", index, field)
	}
	return configfile.NewProblem(c.settings.File, data, key, message, cure)
}

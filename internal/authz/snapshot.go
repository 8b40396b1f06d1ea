package authz

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	configmetrics "k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

const (
	// privileged is the name, as in kube-apiserver, of the authorizer that allows everything to members of system:masters.
	privileged = "kubernetes.io/system-privileged-group"
	// defaultName is the name that KEP-3221 uses for the webhook that asks the kube-apiserver.
	defaultName = "in-cluster-authorizer"
	// defaultTimeout is shorter than the default timeout of an admission webhook (10 s). If the API server hangs, the caller still
	// gets an answer that names the cause.
	defaultTimeout = 8 * time.Second
)

// snapshot holds the authorizers and the caches made from one configuration. It is immutable, except that caches fill. The caches
// end with it, so that no decision is used under another configuration.
type snapshot struct {
	// chain asks the authorizers that return no conditions, in order.
	chain authorizer.UnconditionalAuthorizer
	// conditionals are the authorizers that return conditions. They come before the chain.
	conditionals []*conditional
	observer     Observer
	loaded       *configfile.Authorization
	webhooks     []*webhook
	// endpoints are where the webhooks must answer.
	endpoints endpoints
}

// newSnapshot makes the authorizers of a configuration. The configuration must be valid.
func (c *Chain) newSnapshot(loaded *configfile.Authorization) (*snapshot, error) {
	configuration := loaded.Configuration
	s := &snapshot{loaded: loaded, observer: c.settings.Observer}
	var chain []union.NamedAuthorizer
	add := func(name string, a authorizer.Authorizer) {
		chain = append(chain, union.NamedAuthorizer{AuthorizerName: name, Authorizer: &named{a, name}})
	}
	add(privileged, authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup))
	compiler := authorizationcel.NewDefaultCompiler()
	for i := range configuration.Authorizers {
		one := &configuration.Authorizers[i]
		switch one.Type {
		case apiserver.TypeWebhook:
			w, err := newWebhook(i, one, c.settings.Cluster, compiler)
			if err != nil {
				return nil, fmt.Errorf("authorizer %q: %w", one.Name, err)
			}
			s.webhooks = append(s.webhooks, w)
			s.endpoints = append(s.endpoints, w.endpoint())
			if conditions := loaded.ConditionsOf(i); conditions != nil {
				with, err := newConditional(one, conditions, compiler)
				if err != nil {
					return nil, fmt.Errorf("authorizer %q: %w", one.Name, err)
				}
				s.conditionals = append(s.conditionals, with)
				s.endpoints = append(s.endpoints, with.endpoint(conditions))
				continue
			}
			add(one.Name, newCounting(string(one.Type), one.Name, w))
		case configfile.TypeRBAC:
			add(one.Name, newCounting(string(one.Type), one.Name, c.roles))
		case configfile.TypeNode:
			// The Node authorizer always returns NoOpinion here: only kube-apiserver has its graph.
			continue
		default:
			return nil, fmt.Errorf("authorizer %q: type %q is not known: use Webhook, RBAC or Node", one.Name, one.Type)
		}
	}
	var err error
	s.chain, err = union.New(chain...)
	return s, err
}

// defaultChain asks the SubjectAccessReview API, which asks the whole chain of the kube-apiserver. No authorizer follows it, so
// "fail open" would have no effect. It therefore denies while the API server cannot be asked.
func defaultChain(ttl time.Duration) *apiserver.AuthorizationConfiguration {
	return &apiserver.AuthorizationConfiguration{Authorizers: []apiserver.AuthorizerConfiguration{{
		Type: apiserver.TypeWebhook, Name: defaultName,
		Webhook: &apiserver.WebhookConfiguration{
			AuthorizedTTL: metav1.Duration{Duration: ttl}, CacheAuthorizedRequests: ttl > 0,
			UnauthorizedTTL: metav1.Duration{Duration: ttl}, CacheUnauthorizedRequests: ttl > 0,
			Timeout:                    metav1.Duration{Duration: defaultTimeout},
			SubjectAccessReviewVersion: "v1",
			FailurePolicy:              apiserver.FailurePolicyDeny,
			ConnectionInfo:             apiserver.WebhookConnectionInfo{Type: apiserver.AuthorizationWebhookConnectionInfoTypeInCluster},
		},
	}}}
}

// has reports whether a configuration has an authorizer of a type.
func has(configuration *apiserver.AuthorizationConfiguration, kind apiserver.AuthorizerType) bool {
	return slices.ContainsFunc(configuration.Authorizers, func(one apiserver.AuthorizerConfiguration) bool { return one.Type == kind })
}

// cacheEntries returns how many decisions the cache of each webhook holds, by the webhook's name.
func (s *snapshot) cacheEntries() map[string]int {
	out := make(map[string]int, len(s.webhooks))
	for _, w := range s.webhooks {
		out[w.name] = len(w.decisions.Keys())
	}
	return out
}

// apply puts the current content of the file in force if all of these hold: the file is valid, the parts that cannot change are
// unchanged, and every endpoint of a webhook answers. Contents with the same meaning as before still make a new snapshot with empty caches.
func (c *Chain) apply(ctx context.Context, data []byte) ([]string, error) {
	loaded, err := configfile.LoadAuthorization(c.settings.File, data)
	if err != nil {
		return nil, err
	}
	if problems := c.changed(loaded); len(problems) > 0 {
		return nil, problems
	}
	next, err := c.newSnapshot(loaded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.settings.File, err)
	}
	errs := next.endpoints.ask(ctx)
	if problems := next.endpoints.problems(loaded, errs); len(problems) > 0 {
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
func (c *Chain) changed(next *configfile.Authorization) configfile.Problems {
	before := c.current.Load().loaded.Configuration
	var out configfile.Problems
	for _, kind := range []apiserver.AuthorizerType{configfile.TypeRBAC, configfile.TypeNode} {
		switch had, has := has(before, kind), has(next.Configuration, kind); {
		case has && !had:
			i := slices.IndexFunc(next.Configuration.Authorizers, func(one apiserver.AuthorizerConfiguration) bool { return one.Type == kind })
			out = append(out, next.Problem(i, "type", fmt.Sprintf("%s was not there at start, and is not added by a reload", kind), "restart fieldperm, or leave it out"))
		case had && !has:
			out = append(out, next.Problem(-1, "", fmt.Sprintf("%s was there at start, and is not dropped by a reload", kind), "restart fieldperm, or put it back"))
		}
	}
	return out
}

// noWorse reports whether only files that the configuration names have changed, and every endpoint that does not answer now does not
// answer in the chain in force either. One endpoint that is down must not block the rotation of the certificates of another.
func (c *Chain) noWorse(ctx context.Context, next *snapshot, errs []error) bool {
	before := c.current.Load()
	if !bytes.Equal(before.loaded.Data, next.loaded.Data) {
		return false
	}
	for i, err := range before.endpoints.ask(ctx) {
		if err == nil && errs[i] != nil {
			return false
		}
	}
	return true
}

// askAtStart logs the webhooks that do not answer. The chain is in force all the same: a webhook may wait for fieldperm to start,
// so waiting for the webhook would be a deadlock.
func (c *Chain) askAtStart(ctx context.Context) {
	s := c.current.Load()
	for _, problem := range s.endpoints.problems(s.loaded, s.endpoints.ask(ctx)) {
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
	log.Info("Authorization configuration: is in force", "file", file, "authorizers", configfile.SummaryOfChain(loaded))
}

package authz

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/metrics"
	"k8s.io/apiserver/pkg/authorization/union"

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
	// flightTime bounds the time of one question, whichever callers wait for it. An API server waits at most 30 s for a webhook.
	flightTime = 29 * time.Second
)

// generation holds the authorizers and the caches made from one configuration. It is immutable, except that caches fill. The caches
// end with it, so that no decision is used under another configuration.
type generation struct {
	*shared
	configuration *apiserver.AuthorizationConfiguration
	// data is the file content that the configuration was read from. It is nil for the default chain.
	data     []byte
	webhooks []*webhook
}

// newGeneration makes the authorizers of a configuration. The configuration must be valid.
func (c *Chain) newGeneration(configuration *apiserver.AuthorizationConfiguration, data []byte) (*generation, error) {
	g := &generation{configuration: configuration, data: data}
	chain := links{{name: privileged, local: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)}}
	compiler := authorizationcel.NewDefaultCompiler()
	for i := range configuration.Authorizers {
		one := &configuration.Authorizers[i]
		next := link{name: one.Name, kind: string(one.Type)}
		switch one.Type {
		case apiserver.TypeWebhook:
			w, err := newWebhook(i, one, c.settings.Cluster, compiler)
			if err != nil {
				return nil, fmt.Errorf("authorizer %q: %w", one.Name, err)
			}
			g.webhooks = append(g.webhooks, w)
			next.webhook = w
		case configfile.TypeRBAC:
			next.local = c.roles
		case configfile.TypeNode:
			// The Node authorizer always returns NoOpinion here: only kube-apiserver has its graph.
			continue
		default:
			return nil, fmt.Errorf("authorizer %q: type %q is not known: use Webhook, RBAC or Node", one.Name, one.Type)
		}
		chain = append(chain, next)
	}
	all, err := chain.union()
	if err != nil {
		return nil, err
	}
	g.shared = newShared(all, flightTime, c.settings.Observer)
	g.links = chain
	return g, nil
}

// union returns the chain as one authorizer, for questions that the caches cannot answer.
func (l links) union() (authorizer.Authorizer, error) {
	chain := make([]union.NamedAuthorizer, len(l))
	for i, one := range l {
		a := one.local
		if one.webhook != nil {
			a = one.webhook
		}
		if one.kind != "" {
			a = metrics.InstrumentedAuthorizer(one.kind, one.name, a)
		}
		chain[i] = union.NamedAuthorizer{AuthorizerName: one.name, Authorizer: &named{name: one.name, Authorizer: a}}
	}
	return union.New(chain...)
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
func (g *generation) cacheEntries() map[string]int {
	out := make(map[string]int, len(g.webhooks))
	for _, w := range g.webhooks {
		out[w.name] = w.kept.count(time.Now())
	}
	return out
}

package authz

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	webhookauthorizer "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/rest"
)

const (
	// reviewsPath is where a kube-apiserver serves SubjectAccessReviews, in v1 only.
	reviewsPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

	// notKept is the time to live of answers that are not to be kept. At 0 they would count as long as the
	// clock stands still.
	notKept = -time.Nanosecond

	// excludedTime is how long it is known that conditions exclude a question. It might be for ever.
	excludedTime = time.Hour
)

// webhook is k8s.io/apiserver's webhook authorizer, and what it said. It keeps nothing itself: its key
// costs more than all else that is done for a check whose answer is kept.
type webhook struct {
	authorizer.Authorizer
	name    string
	metrics trailMetrics
	// index is its place in the configuration.
	index int
	// probe asks the same webhook, at once and once, whatever its match conditions.
	probe                          authorizer.Authorizer
	authorizedTTL, unauthorizedTTL time.Duration
	// kept are answers. excluded are questions that match conditions keep from it: these depend on nothing
	// else, so that what they say holds as long as they are in force.
	kept, excluded *kept
	// longPath is for unkept.
	longPath string
}

func newWebhook(index int, one *apiserver.AuthorizerConfiguration, cluster *rest.Config, compiler authorizationcel.Compiler) (*webhook, error) {
	config, err := connection(&one.Webhook.ConnectionInfo, cluster)
	if err != nil {
		return nil, err
	}
	config.Timeout = one.Webhook.Timeout.Duration
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return judged{base} })
	w := &webhook{
		name: one.Name, metrics: newTrailMetrics(), index: index, authorizedTTL: notKept, unauthorizedTTL: notKept,
		kept: newKept(cacheSize), excluded: newKept(cacheSize), longPath: strings.Repeat("/", longest),
	}
	if one.Webhook.CacheAuthorizedRequests {
		w.authorizedTTL = one.Webhook.AuthorizedTTL.Duration
	}
	if one.Webhook.CacheUnauthorizedRequests {
		w.unauthorizedTTL = one.Webhook.UnauthorizedTTL.Duration
	}
	// Any policy but the one that goes on to the next authorizer is the one that does not.
	onError := authorizer.DecisionDeny
	if one.Webhook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		onError = authorizer.DecisionNoOpinion
	}
	version := one.Webhook.SubjectAccessReviewVersion
	// Short steps: a request of a user waits for this. They sum to under a second.
	retry := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	w.Authorizer, err = webhookauthorizer.New(config, version, notKept, notKept, retry, onError, one.Webhook.MatchConditions, one.Name, w.metrics, compiler)
	if err != nil {
		return nil, err
	}
	w.probe, err = webhookauthorizer.New(config, version, notKept, notKept, wait.Backoff{Steps: 1}, authorizer.DecisionDeny, nil, one.Name, webhookmetrics.NoopAuthorizerMetrics{}, compiler)
	return w, err
}

// connection returns how to reach a webhook. client-go's rate limit is off: the limit of fieldperm's own
// requests is what holds checks.
func connection(info *apiserver.WebhookConnectionInfo, cluster *rest.Config) (*rest.Config, error) {
	switch info.Type {
	case apiserver.AuthorizationWebhookConnectionInfoTypeInCluster:
		if cluster == nil {
			return nil, errNoCluster(info.Type)
		}
		config := rest.CopyConfig(cluster)
		config.APIPath = reviewsPath
		// k8s.io/apiserver sets what reviews are written in, but not what is accepted.
		config.ContentConfig = rest.ContentConfig{}
		config.QPS, config.RateLimiter = -1, nil
		return config, nil
	case apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile:
		config, err := webhookutil.LoadKubeconfig(*info.KubeConfigFile, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", *info.KubeConfigFile, err)
		}
		// What is read now is what counts, until a change of the files makes another generation: client-go
		// would find them anew from time to time, and only some of them.
		if err := rest.LoadTLSFiles(config); err != nil {
			return nil, fmt.Errorf("%s: %w", *info.KubeConfigFile, err)
		}
		return config, nil
	}
	return nil, fmt.Errorf("connectionInfo.type %q is not known: use KubeConfigFile or InClusterConfig", info.Type)
}

func errNoCluster(what string) error {
	return fmt.Errorf("%s: needs a cluster, and none is known: give --kubeconfig, or run in a cluster", what)
}

// Authorize asks, unless what was said before still counts, and notes on the trail where the answer is
// from.
func (w *webhook) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	t := trailOf(ctx)
	t.call = call{}
	k, err := keyOf(a)
	if err != nil {
		return authorizer.DecisionDeny, "", err
	}
	if o, ok := w.kept.get(k, time.Now()); ok {
		t.hit = t.hit || o.err == nil
		return o.decision, o.reason, o.err
	}
	decision, reason, err := w.Authorizer.Authorize(ctx, unkept{a, w.longPath})
	if i := (*inconclusive)(nil); errors.As(err, &i) {
		decision = authorizer.DecisionNoOpinion
	}
	switch {
	case t.call.asked:
		t.asked = true
		if t.call.answered && !tooLong(a) {
			w.keep(k, opinion{decision: decision, reason: reason, err: err})
		}
	case t.call.skipped && err == nil && !tooLong(a):
		now := time.Now()
		w.excluded.put(k, opinion{decision: decision, excluded: true}, now, now.Add(excludedTime))
	}
	return decision, reason, err
}

// keep keeps an answer that came by a round trip just now. One that both allows and denies is kept as one
// that allows; it is an error each time.
func (w *webhook) keep(k key, o opinion) {
	ttl := w.unauthorizedTTL
	if o.decision == authorizer.DecisionAllow || o.err != nil {
		ttl = w.authorizedTTL
	}
	if now := time.Now(); ttl > 0 {
		w.kept.put(k, o, now, now.Add(ttl))
	}
}

// recall returns what Authorize would without a round trip. A question that is excluded is not counted.
func (w *webhook) recall(k key, now time.Time) (opinion, bool) {
	if o, ok := w.kept.get(k, now); ok {
		return o, true
	}
	return w.excluded.get(k, now)
}

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
	// reviewsPath is the path of SubjectAccessReviews in a kube-apiserver. Only v1 is used.
	reviewsPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

	// notKept is the TTL of decisions that must not be cached. With 0, a decision would be valid as long as the clock does not
	// advance.
	notKept = -time.Nanosecond

	// excludedTime is the TTL of the fact that match conditions exclude a question. The fact never changes, so any value is correct.
	excludedTime = time.Hour
)

// webhook is k8s.io/apiserver's webhook authorizer plus a cache of its decisions. The cache of that authorizer is off: computing
// its key costs more than all other work for a check with a cached decision.
type webhook struct {
	authorizer.Authorizer
	name    string
	metrics trailMetrics
	// index is the webhook's position in the configuration.
	index int
	// probe asks the same webhook once, without retries and without match conditions.
	probe                          authorizer.Authorizer
	authorizedTTL, unauthorizedTTL time.Duration
	// kept has decisions. excluded has questions that match conditions exclude. Match conditions depend only on the question, so an
	// entry in excluded is valid as long as the conditions are in force.
	kept, excluded *kept
	// longPath is the path that unkept returns.
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
	// Fail closed: every failurePolicy except NoOpinion denies.
	onError := authorizer.DecisionDeny
	if one.Webhook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		onError = authorizer.DecisionNoOpinion
	}
	version := one.Webhook.SubjectAccessReviewVersion
	// The steps are short because a user's request waits for the retries. Their sum is less than a second.
	retry := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 4}
	w.Authorizer, err = webhookauthorizer.New(config, version, notKept, notKept, retry, onError, one.Webhook.MatchConditions, one.Name, w.metrics, compiler)
	if err != nil {
		return nil, err
	}
	w.probe, err = webhookauthorizer.New(config, version, notKept, notKept, wait.Backoff{Steps: 1}, authorizer.DecisionDeny, nil, one.Name, webhookmetrics.NoopAuthorizerMetrics{}, compiler)
	return w, err
}

// connection returns the client configuration of a webhook. client-go's rate limit is off: the limit on requests that fieldperm
// serves also bounds its checks.
func connection(info *apiserver.WebhookConnectionInfo, cluster *rest.Config) (*rest.Config, error) {
	switch info.Type {
	case apiserver.AuthorizationWebhookConnectionInfoTypeInCluster:
		if cluster == nil {
			return nil, errNoCluster(info.Type)
		}
		config := rest.CopyConfig(cluster)
		config.APIPath = reviewsPath
		// k8s.io/apiserver sets the content type of reviews that it sends, but not the types that it accepts.
		config.ContentConfig = rest.ContentConfig{}
		config.QPS, config.RateLimiter = -1, nil
		return config, nil
	case apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile:
		config, err := webhookutil.LoadKubeconfig(*info.KubeConfigFile, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", *info.KubeConfigFile, err)
		}
		// The TLS files are read once, here. A change of the files makes a new generation. Otherwise client-go would reread some of
		// the files, but not all, from time to time.
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

// Authorize returns the cached decision if it has not expired, and asks the webhook otherwise. It records the source of the
// decision in the trail.
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

// keep caches a decision that has just arrived by a round trip. An answer that both allows and denies is cached with the TTL of
// allowed requests. It returns an error each time.
func (w *webhook) keep(k key, o opinion) {
	ttl := w.unauthorizedTTL
	if o.decision == authorizer.DecisionAllow || o.err != nil {
		ttl = w.authorizedTTL
	}
	if now := time.Now(); ttl > 0 {
		w.kept.put(k, o, now, now.Add(ttl))
	}
}

// recall returns what Authorize would return, if that needs no round trip. An excluded question is not counted in metrics.
func (w *webhook) recall(k key, now time.Time) (opinion, bool) {
	if o, ok := w.kept.get(k, now); ok {
		return o, true
	}
	return w.excluded.get(k, now)
}

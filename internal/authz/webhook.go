package authz

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	webhookauthorizer "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

// reviewsPath is the path of SubjectAccessReviews in a kube-apiserver. Only v1 is used.
const reviewsPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

// webhook is k8s.io/apiserver's webhook authorizer plus a cache of its decisions (roundtrip.go). The cache of that authorizer is off: a key of
// it costs more than all other work for a check with a cached decision, and has all groups of the user.
type webhook struct {
	authorizer.Authorizer
	name    string
	metrics callMetrics
	// index is the webhook's position in the configuration.
	index int
	// probe asks the same webhook once, without retries and without match conditions.
	probe authorizer.Authorizer
	// With a TTL of 0, decisions are not cached.
	authorizedTTL, unauthorizedTTL time.Duration
	// decisions has the answers of the webhook. excluded has questions that match conditions exclude. Match conditions depend only on the
	// question, so an entry in excluded is valid as long as the conditions are in force.
	decisions, excluded *cache.LRUExpireCache

	mu sync.Mutex
	// flights are the questions under way. A decision is cached before its flight is removed, so that no question is asked again.
	flights map[key]*flight
}

func newWebhook(index int, one *apiserver.AuthorizerConfiguration, cluster *rest.Config, compiler authorizationcel.Compiler) (*webhook, error) {
	config, err := connection(&one.Webhook.ConnectionInfo, cluster)
	if err != nil {
		return nil, err
	}
	config.Timeout = one.Webhook.Timeout.Duration
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return strictTransport{base, "SubjectAccessReview"} })
	w := &webhook{
		name: one.Name, metrics: newCallMetrics(), index: index,
		decisions: cache.NewLRUExpireCache(cacheSize), excluded: cache.NewLRUExpireCache(cacheSize), flights: map[key]*flight{},
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
	w.Authorizer, err = webhookauthorizer.New(config, version, 0, 0, retry, onError, one.Webhook.MatchConditions, one.Name, w.metrics, compiler)
	if err != nil {
		return nil, err
	}
	w.probe, err = webhookauthorizer.New(config, version, 0, 0, wait.Backoff{Steps: 1}, authorizer.DecisionDeny, nil, one.Name, webhookmetrics.NoopAuthorizerMetrics{}, compiler)
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
		// The TLS files are read once, here. A change of the files makes a new snapshot. Otherwise client-go would reread some of
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

// mostAnswer is larger than any review, in bytes. Without a limit, client-go would read on.
const mostAnswer = 1 << 20

// strictTransport returns an error for responses that k8s.io/apiserver would wrongly take for NoOpinion (P4): a document without
// status.allowed, and a review of a chain in which an authorizer failed. It does not follow redirects: the question and the
// credentials are meant for one address only.
type strictTransport struct {
	base http.RoundTripper
	// kind is the kind of review that is expected.
	kind string
}

// inconclusive is the error for a review with no opinion and an evaluationError: for example, a kube-apiserver returns it when a
// webhook of its own chain is down. The webhook that fieldperm asked did not fail, so its failurePolicy does not apply. Another
// authorizer may still allow the request. The decision is not cached.
type inconclusive struct{ cause string }

func (i *inconclusive) Error() string {
	return "did not allow it, for an authorizer of its own failed: " + i.cause
}

// RoundTrip implements http.RoundTripper.
func (s strictTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		_ = response.Body.Close()
		return nil, fmt.Errorf("answers %q: write the address that it redirects to", response.Status)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, mostAnswer), response.Body}
		return response, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	if len(body) > mostAnswer {
		return nil, fmt.Errorf("answers with more than %d bytes", mostAnswer)
	}
	var review struct {
		Kind   string `json:"kind"`
		Status *struct {
			Allowed *bool  `json:"allowed"`
			Denied  *bool  `json:"denied"`
			Failure string `json:"evaluationError"`
		} `json:"status"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(body, &review) == nil {
		switch status := review.Status; {
		case review.Kind != s.kind || status == nil || status.Allowed == nil && status.Denied == nil:
			return nil, fmt.Errorf("answers with what is no %s that has status.allowed", s.kind)
		case status.Failure != "" && !(status.Allowed != nil && *status.Allowed):
			if status.Denied == nil || !*status.Denied {
				return nil, &inconclusive{status.Failure}
			}
		}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

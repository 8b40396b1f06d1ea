package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// pause is how long an endpoint that did not answer is not asked. It is short, so that a recovery is noticed.
const pause = time.Second

// endpoint asks one address. It is safe for concurrent use.
type endpoint struct {
	client  *webhook.GenericWebhook
	timeout time.Duration
	// pause is how long the endpoint is not asked after it did not answer. With 0 only the same review goes on without asking.
	pause time.Duration
	clock cache.Clock

	mu sync.Mutex
	// failure is why the endpoint did not answer at a time, nil if it answered later.
	failure error
	at      time.Time
}

// newEndpoint returns a client of k8s.io/apiserver for one address.
func newEndpoint(of *rest.Config, timeout, pause time.Duration, clock cache.Clock) (*endpoint, error) {
	config := rest.CopyConfig(of)
	config.ContentConfig = rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}
	config.QPS, config.RateLimiter = -1, nil
	config.Wrap(limit)
	scheme := runtime.NewScheme()
	// The steps are short because a user's request waits for the retries.
	retry := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 3}
	client, err := webhook.NewGenericWebhook(scheme, serializer.NewCodecFactory(scheme), config, nil, retry)
	if err != nil {
		return nil, err
	}
	return &endpoint{client: client, timeout: timeout, pause: pause, clock: clock}, nil
}

// post sends a review and returns the answer. If the endpoint has not answered shortly before, or in the same review, it is not asked: a
// request of a user waits for its timeout once, and not for each verb.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	during := reviewOf(ctx)
	if err := cmp.Or(during.failure(e), e.recent()); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	answer, err := e.client.WithExponentialBackoff(limited, func() rest.Result {
		// client-go sets no content type for bytes.
		return e.client.RestClient.Post().SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(limited)
	}).Raw()
	var status apierrors.APIStatus
	switch {
	case err == nil:
		e.set(nil)
	case errors.As(err, &status):
		// It answers, and may answer other questions.
		e.set(nil)
		if code := status.Status().Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests {
			during.set(e, err)
		}
	case ctx.Err() == nil:
		// A caller that gave up says nothing about the endpoint.
		e.set(err)
		during.set(e, err)
	}
	return answer, err
}

func (e *endpoint) set(failure error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure, e.at = failure, e.clock.Now()
}

// recent returns why the endpoint did not answer, if that was a short time ago.
func (e *endpoint) recent() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil || e.clock.Now().Sub(e.at) >= e.pause {
		return nil
	}
	return fmt.Errorf("has not answered shortly before, and is not asked for %s: %w", e.pause, e.failure)
}

// Review is one review of a user's request. It remembers which endpoints have not answered. The nil Review remembers nothing. It is safe for
// concurrent use.
type Review struct {
	mu     sync.Mutex
	failed map[*endpoint]error
}

type reviewKey struct{}

// During returns a context for questions that are a part of the review.
func (r *Review) During(ctx context.Context) context.Context {
	return context.WithValue(ctx, reviewKey{}, r)
}

func reviewOf(ctx context.Context) *Review {
	r, _ := ctx.Value(reviewKey{}).(*Review)
	return r
}

func (r *Review) failure(of *endpoint) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.failed[of]; err != nil {
		return fmt.Errorf("has not answered in this review, and is not asked again: %w", err)
	}
	return nil
}

func (r *Review) set(of *endpoint, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = map[*endpoint]error{}
	}
	r.failed[of] = err
}

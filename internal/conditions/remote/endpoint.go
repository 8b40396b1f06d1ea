package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

const (
	// pause is how long an endpoint that did not answer about a user and an object is not asked about them. It is short, so that a recovery is
	// noticed.
	pause = time.Second
	// mostPauses is how many of them there are at the same time.
	mostPauses = 1024
)

// endpoint asks one address. It is safe for concurrent use.
type endpoint struct {
	client  *webhook.GenericWebhook
	timeout time.Duration
	clock   cache.Clock

	mu sync.Mutex
	// pauses are those of the last failures, by user and object. A failure about one of them must not be a failure about others: a user could
	// keep a webhook from denying other requests.
	pauses map[string]failure
}

// failure is why an endpoint did not answer.
type failure struct {
	error
	until time.Time
}

// newEndpoint returns a client of k8s.io/apiserver for one address.
func newEndpoint(of *rest.Config, timeout time.Duration, clock cache.Clock) (*endpoint, error) {
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
	return &endpoint{client: client, timeout: timeout, clock: clock, pauses: map[string]failure{}}, nil
}

// post sends a review and returns the answer. about is the user and the object, "" if only the review counts. If the endpoint has not answered
// about them shortly before, or in the same review, it is not asked: a request of a user waits for its timeout once, and not for each verb.
func (e *endpoint) post(ctx context.Context, about string, body []byte) ([]byte, error) {
	during := reviewOf(ctx)
	if err := cmp.Or(during.failure(e), e.recent(about)); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	answer, err := e.client.WithExponentialBackoff(limited, func() rest.Result { return e.once(limited, body) }).Raw()
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case errors.As(err, &status):
		// It answers, and may answer other questions.
		if code := status.Status().Code; code >= http.StatusInternalServerError || code == http.StatusTooManyRequests {
			during.set(e, err)
		}
	case ctx.Err() == nil:
		// A caller that gave up says nothing about the endpoint.
		e.pauseFor(about, err)
		during.set(e, err)
	}
	return answer, err
}

// once sends a body without retries.
func (e *endpoint) once(ctx context.Context, body []byte) rest.Result {
	// client-go sets no content type for bytes.
	return e.client.RestClient.Post().SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx)
}

// pauseFor begins a pause.
func (e *endpoint) pauseFor(about string, err error) {
	if about == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	maps.DeleteFunc(e.pauses, func(_ string, f failure) bool { return !now.Before(f.until) })
	if len(e.pauses) < mostPauses {
		e.pauses[about] = failure{err, now.Add(pause)}
	}
}

// recent returns why the endpoint did not answer about a user and an object, if that was a short time ago.
func (e *endpoint) recent(about string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, ok := e.pauses[about]
	if !ok || !e.clock.Now().Before(f.until) {
		return nil
	}
	return fmt.Errorf("has not answered shortly before, and is not asked again for %s: %w", pause, f.error)
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

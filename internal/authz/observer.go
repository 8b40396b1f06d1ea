package authz

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// Observer is told of checks, for metrics. It must not block, and is told by several at once.
type Observer interface {
	// Check is told how a check ended for whoever asked: allowed, denied, error, or canceled if that
	// one gave up.
	Check(result string)
	// CheckFrom is told where an answer is from: hit (kept from an earlier question), miss (the API
	// server was asked) or shared (another asked the same at the time). Each question that goes out
	// is one miss, also if nobody waits for it any more.
	CheckFrom(source string)
	// CheckTook is told how long the API server took, retries included, if it was asked: allowed,
	// denied or error.
	CheckTook(result string, took time.Duration)
}

const (
	sourceHit    = "hit"
	sourceMiss   = "miss"
	sourceShared = "shared"
)

// nobody observes nothing.
type nobody struct{}

func (nobody) Check(string)                    {}
func (nobody) CheckFrom(string)                {}
func (nobody) CheckTook(string, time.Duration) {}

// resultOf is never allowed if there is an error.
func resultOf(decision authorizer.Decision, err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case err != nil:
		return "error"
	case decision == authorizer.DecisionAllow:
		return "allowed"
	}
	return "denied"
}

// roundTrips tells the questions that went to the API server from those that the cache of the
// delegating authorizer answered, which it does not show: it reports each round trip as a metric,
// with the context of the question. Its own metrics stay as they are.
type roundTrips struct {
	webhookmetrics.AuthorizerMetrics
}

func newRoundTrips() roundTrips {
	return roundTrips{authorizerfactory.NewDelegatingAuthorizerMetrics()}
}

// RecordWebhookEvaluation is called once for each round trip, failed ones included.
func (r roundTrips) RecordWebhookEvaluation(ctx context.Context, name, result string) {
	if asked, ok := ctx.Value(askedKey{}).(*atomic.Bool); ok {
		asked.Store(true)
	}
	r.AuthorizerMetrics.RecordWebhookEvaluation(ctx, name, result)
}

type askedKey struct{}

// watched returns a context for one question, and whether that has made a round trip.
func watched(ctx context.Context) (context.Context, *atomic.Bool) {
	asked := new(atomic.Bool)
	return context.WithValue(ctx, askedKey{}, asked), asked
}

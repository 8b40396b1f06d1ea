package authz

import (
	"context"
	"errors"
	"time"

	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// call describes how one webhook treated a question.
type call struct {
	// asked means that there was a round trip. answered means that the last round trip returned a review. skipped means that a match
	// condition is false.
	asked, answered, skipped bool
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// callOf returns the call in the context, and without one in the context a new one, which is discarded.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// callMetrics records KEP-3221's metrics of webhooks and match conditions. k8s.io/apiserver calls it with the context of the
// question, so it can record facts about the call that the authorizer does not return.
type callMetrics struct {
	webhookmetrics.NoopRequestMetrics
	webhookmetrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}

func newCallMetrics() callMetrics {
	return callMetrics{WebhookMetrics: webhookmetrics.NewWebhookMetrics(), MatcherMetrics: authorizationcel.NewMatcherMetrics()}
}

// RecordWebhookEvaluation is called once for each round trip, including failed ones.
func (m callMetrics) RecordWebhookEvaluation(ctx context.Context, name, result string) {
	c := callOf(ctx)
	c.asked, c.answered = true, result == "success"
	m.WebhookMetrics.RecordWebhookEvaluation(ctx, name, result)
}

// RecordAuthorizationMatchConditionExclusion is called when a match condition is false.
func (m callMetrics) RecordAuthorizationMatchConditionExclusion(ctx context.Context, kind, name string) {
	callOf(ctx).skipped = true
	m.MatcherMetrics.RecordAuthorizationMatchConditionExclusion(ctx, kind, name)
}

// Observer receives checks, for metrics. Its methods must not block, and several goroutines call them at the same time.
type Observer interface {
	// Check is called when a check ends for a caller. result is allowed, denied, error, or canceled if the caller gave up.
	Check(result string)
	// CheckFrom is called with the source of an answer: miss (a webhook was asked by a round trip), hit (a cached decision of a
	// webhook), local (decided in process, no webhook was asked) or shared (another caller was asking the same question at the same
	// time). A caller that gave up counts only as miss, if it has begun a round trip.
	CheckFrom(source string)
	// CheckTook is called for every miss that the caller waited for, with the time that the whole chain took, retries included. result is
	// allowed, denied or error.
	CheckTook(result string, took time.Duration)
	// CacheEntries is called once, with a function that returns how many decisions the cache of each webhook holds, by the webhook's
	// name.
	CacheEntries(count func() map[string]int)
}

const (
	sourceHit    = "hit"
	sourceMiss   = "miss"
	sourceShared = "shared"
	sourceLocal  = "local"

	resultCanceled = "canceled"
)

// noObserver is an Observer that does nothing.
type noObserver struct{}

func (noObserver) Check(string)                       {}
func (noObserver) CheckFrom(string)                   {}
func (noObserver) CheckTook(string, time.Duration)    {}
func (noObserver) CacheEntries(func() map[string]int) {}

// resultOf returns the result of a check for metrics. It never returns allowed if there is an error.
func resultOf(allowed bool, err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return resultCanceled
	case err != nil:
		return "error"
	case allowed:
		return "allowed"
	}
	return "denied"
}

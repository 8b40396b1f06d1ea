package authz

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// questionTrace records the way of one question through the chain. One goroutine asks the chain; other goroutines may read only at
// meanwhile.
type questionTrace struct {
	// at is the name of the authorizer that is being asked, nil before the first.
	at atomic.Pointer[string]
	// by is the name of the authorizer that decided, "" if none had an opinion.
	by string
	// asked means that a webhook was asked by a round trip. hit means that a webhook answered from its cache.
	asked, hit bool
	// skipped are the names of the webhooks that match conditions excluded.
	skipped []string
	// failed is the error of the first authorizer that failed and was skipped.
	failed error
	// call describes the call of the webhook that is being asked.
	call call
}

// call describes how one webhook treated a question.
type call struct {
	// asked means that there was a round trip. answered means that the last round trip returned a review. skipped means that a match
	// condition is false.
	asked, answered, skipped bool
}

// name returns the name of the authorizer that is being asked, or that was asked last.
func (t *questionTrace) name() string {
	if at := t.at.Load(); at != nil {
		return *at
	}
	return ""
}

// source returns the source of an answer, as in Observer.CheckFrom. It returns "" if the question failed before any webhook was
// asked.
func (t *questionTrace) source(err error) string {
	switch {
	case t.asked || t.call.asked:
		return sourceMiss
	case err != nil:
		return ""
	case t.hit:
		return sourceHit
	}
	return sourceLocal
}

// skip records that match conditions exclude a webhook.
func (t *questionTrace) skip(name string) { t.skipped = append(t.skipped, name) }

type traceKey struct{}

func withTrace(ctx context.Context, t *questionTrace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// traceOf returns the trace in the context. It never returns nil: without a trace in the context, it returns a new one, which is
// discarded.
func traceOf(ctx context.Context) *questionTrace {
	if t, ok := ctx.Value(traceKey{}).(*questionTrace); ok {
		return t
	}
	return &questionTrace{}
}

// named wraps an authorizer. It records the authorizer's name in the trace and adds the name to errors.
type named struct {
	authorizer.Authorizer
	name string
}

// Authorize asks the wrapped authorizer.
func (n *named) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	t := traceOf(ctx)
	t.at.Store(&n.name)
	decision, reason, err := n.Authorizer.Authorize(ctx, a)
	if decision == authorizer.DecisionAllow || decision == authorizer.DecisionDeny {
		t.by = n.name
	}
	if err != nil {
		err = fmt.Errorf("authorizer %q: %w", n.name, err)
		if decision == authorizer.DecisionNoOpinion && t.failed == nil {
			t.failed = err
		}
	}
	return decision, reason, err
}

// traceMetrics records KEP-3221's metrics of webhooks and match conditions. k8s.io/apiserver calls it with the context of the
// question, so it can record facts in the trace that the authorizer does not return.
type traceMetrics struct {
	webhookmetrics.NoopRequestMetrics
	webhookmetrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}

func newTraceMetrics() traceMetrics {
	return traceMetrics{WebhookMetrics: webhookmetrics.NewWebhookMetrics(), MatcherMetrics: authorizationcel.NewMatcherMetrics()}
}

// RecordWebhookEvaluation is called once for each round trip, including failed ones.
func (m traceMetrics) RecordWebhookEvaluation(ctx context.Context, name, result string) {
	c := &traceOf(ctx).call
	c.asked, c.answered = true, result == "success"
	m.WebhookMetrics.RecordWebhookEvaluation(ctx, name, result)
}

// RecordAuthorizationMatchConditionExclusion is called when a match condition is false.
func (m traceMetrics) RecordAuthorizationMatchConditionExclusion(ctx context.Context, kind, name string) {
	traceOf(ctx).call.skipped = true
	m.MatcherMetrics.RecordAuthorizationMatchConditionExclusion(ctx, kind, name)
}

// Observer receives checks, for metrics. Its methods must not block, and several goroutines call them at the same time.
type Observer interface {
	// Check is called when a check ends for a caller. result is allowed, denied, error, or canceled if the caller gave up.
	Check(result string)
	// CheckFrom is called with the source of an answer: miss (a webhook was asked by a round trip), hit (a cached decision of a
	// webhook), local (decided in process, no webhook was asked) or shared (another caller asked the same question at the same
	// time). Every question that goes through the chain counts once as miss, hit or local, even if no caller waits for it any more.
	CheckFrom(source string)
	// CheckTook is called for every miss with the time that the whole chain took, retries included. result is allowed, denied or
	// error.
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
)

// noObserver is an Observer that does nothing.
type noObserver struct{}

func (noObserver) Check(string)                       {}
func (noObserver) CheckFrom(string)                   {}
func (noObserver) CheckTook(string, time.Duration)    {}
func (noObserver) CacheEntries(func() map[string]int) {}

// resultOf returns the result of a check for metrics. It never returns allowed if there is an error.
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

package authz

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// trail records the way of one question through the chain. One goroutine asks the chain; other goroutines may read only at
// meanwhile.
type trail struct {
	// at is the name of the authorizer that is being asked, nil before the first.
	at atomic.Pointer[string]
	// by is the name of the authorizer that decided, "" if none had an opinion.
	by string
	// asked means that a webhook was asked by a round trip. hit means that a webhook answered from its cache.
	asked, hit bool
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
func (t *trail) name() string {
	if at := t.at.Load(); at != nil {
		return *at
	}
	return ""
}

// source returns the source of an answer, as in Observer.CheckFrom. It returns "" if the question failed before any webhook was
// asked.
func (t *trail) source(err error) string {
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

type trailKey struct{}

func withTrail(ctx context.Context, t *trail) context.Context {
	return context.WithValue(ctx, trailKey{}, t)
}

// trailOf returns the trail in the context. It never returns nil: without a trail in the context, it returns a new one, which is
// discarded.
func trailOf(ctx context.Context) *trail {
	if t, ok := ctx.Value(trailKey{}).(*trail); ok {
		return t
	}
	return &trail{}
}

// named wraps an authorizer. It records the authorizer's name in the trail and adds the name to errors.
type named struct {
	authorizer.Authorizer
	name string
}

// Authorize asks the wrapped authorizer.
func (n *named) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	t := trailOf(ctx)
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

// trailMetrics records KEP-3221's metrics of webhooks and match conditions. k8s.io/apiserver calls it with the context of the
// question, so it can record in the trail what the authorizer does not return.
type trailMetrics struct {
	webhookmetrics.NoopRequestMetrics
	webhookmetrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}

func newTrailMetrics() trailMetrics {
	return trailMetrics{WebhookMetrics: webhookmetrics.NewWebhookMetrics(), MatcherMetrics: authorizationcel.NewMatcherMetrics()}
}

// RecordWebhookEvaluation is called once for each round trip, including failed ones.
func (m trailMetrics) RecordWebhookEvaluation(ctx context.Context, name, result string) {
	c := &trailOf(ctx).call
	c.asked, c.answered = true, result == "success"
	m.WebhookMetrics.RecordWebhookEvaluation(ctx, name, result)
}

// RecordAuthorizationMatchConditionExclusion is called when a match condition is false.
func (m trailMetrics) RecordAuthorizationMatchConditionExclusion(ctx context.Context, kind, name string) {
	trailOf(ctx).call.skipped = true
	m.MatcherMetrics.RecordAuthorizationMatchConditionExclusion(ctx, kind, name)
}

package authz

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

// trail is what one question leaves behind on its way through the chain. The chain is asked by one
// goroutine; only at may be read by others meanwhile.
type trail struct {
	// at is the name of the authorizer that is being asked, nil before the first.
	at atomic.Pointer[string]
	// by is the name of the one that decided, "" if none had an opinion.
	by string
	// asked says that a webhook was asked by a round trip, hit that one answered from its cache.
	asked, hit bool
	// failed is of the first authorizer that failed and was passed over.
	failed error
	// call is about the webhook that is being asked.
	call call
}

// call is one webhook's part of a question.
type call struct {
	// asked: there was a round trip. answered: the last one brought a review. skipped: a match condition is
	// false.
	asked, answered, skipped bool
}

// name is of the authorizer that is being asked, or was last.
func (t *trail) name() string {
	if at := t.at.Load(); at != nil {
		return *at
	}
	return ""
}

// source says where an answer is from. It is "" for a question that failed though no webhook was asked.
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

// trailOf is never nil: what is asked without one leaves nothing behind.
func trailOf(ctx context.Context) *trail {
	if t, ok := ctx.Value(trailKey{}).(*trail); ok {
		return t
	}
	return &trail{}
}

// named puts the name of an authorizer on the trail and on its errors.
type named struct {
	authorizer.Authorizer
	name string
}

// Authorize asks the authorizer.
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

// trailMetrics are KEP-3221's metrics of webhooks and match conditions. k8s.io/apiserver records them with
// the context of the question, and so they tell of it what its authorizer does not.
type trailMetrics struct {
	webhookmetrics.NoopRequestMetrics
	webhookmetrics.WebhookMetrics
	authorizationcel.MatcherMetrics
}

func newTrailMetrics() trailMetrics {
	return trailMetrics{WebhookMetrics: webhookmetrics.NewWebhookMetrics(), MatcherMetrics: authorizationcel.NewMatcherMetrics()}
}

// RecordWebhookEvaluation is called once for each round trip, failed ones included.
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

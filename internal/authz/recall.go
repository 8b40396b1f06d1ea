package authz

import (
	"context"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/metrics"
)

// links are the authorizers of a chain, in order.
type links []link

// link is one authorizer: a webhook, or an authorizer that decides in process.
type link struct {
	name string
	// kind is the authorizer type in decision metrics. "" means that its decisions are not counted.
	kind    string
	webhook *webhook
	local   authorizer.Authorizer
}

// recall returns the chain's decision if that needs no round trip: each webhook has a cached decision, or its match conditions
// exclude the question. Otherwise, or on any error, ok is false, no metric has been counted, and the caller must ask the chain.
func (l links) recall(ctx context.Context, c *check) (v verdict, ok bool) {
	defer func() {
		if recover() != nil {
			v, ok = verdict{}, false // The chain panics in the same way, and reports it as a panic.
		}
	}()
	if len(l) == 0 {
		return verdict{}, false
	}
	var reasons []string
	var excluded []*webhook
	v.source = sourceLocal
	for i := range l {
		one := &l[i]
		o, known := one.recall(ctx, c)
		if !known || o.err != nil {
			return verdict{}, false
		}
		switch {
		case o.excluded:
			excluded = append(excluded, one.webhook)
		case one.webhook != nil:
			v.source = sourceHit
		}
		switch o.decision {
		case authorizer.DecisionAllow:
			v.allowed = true
			one.decided("allowed")
		case authorizer.DecisionDeny:
			one.decided("denied")
		case authorizer.DecisionNoOpinion:
			if o.reason != "" {
				reasons = append(reasons, one.name+": "+o.reason)
			}
			continue
		default:
			return verdict{}, false
		}
		v.reason, v.by = o.reason, one.name
		count(ctx, excluded)
		return v, true
	}
	v.reason = strings.Join(reasons, "\n")
	count(ctx, excluded)
	return v, true
}

// recall returns the opinion of the authorizer if that needs no round trip.
func (l *link) recall(ctx context.Context, c *check) (opinion, bool) {
	if l.webhook != nil {
		return l.webhook.recall(c.key(), time.Now())
	}
	decision, reason, err := l.local.Authorize(ctx, c)
	return opinion{decision: decision, reason: reason, err: err}, true
}

// decided counts a decision as k8s.io/apiserver's InstrumentedAuthorizer does in the chain.
func (l *link) decided(decision string) {
	if l.kind != "" {
		metrics.RecordAuthorizationDecision(l.kind, l.name, decision)
	}
}

// count counts webhooks that a match condition excluded, as k8s.io/apiserver's webhook authorizer does.
func count(ctx context.Context, excluded []*webhook) {
	for _, w := range excluded {
		w.metrics.MatcherMetrics.RecordAuthorizationMatchConditionExclusion(ctx, "Webhook", w.name)
	}
}

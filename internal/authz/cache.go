package authz

import (
	"context"
	"strings"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/metrics"
)

const (
	// cacheSize is the maximum number of cached decisions of each webhook, the same as in k8s.io/apiserver's webhook authorizer.
	cacheSize = 8192

	// longest bounds the length of attributes, as in k8s.io/apiserver: decisions about attributes of this length or longer are not
	// cached.
	longest = 10000
)

// authorizerDecision is the decision of one authorizer about a question. The zero value denies.
type authorizerDecision struct {
	decision authorizer.Decision
	reason   string
	// err is set for an answer that contradicts itself. An authorizer that fails to answer has no decision in the cache.
	err error
	// excluded means NoOpinion because the webhook's match conditions exclude the question.
	excluded bool
}

// tooLong reports whether the attributes are too long to be cached. Users choose these texts, and could make them of any length.
func tooLong(a authorizer.Attributes) bool {
	return len(a.GetNamespace())+len(a.GetVerb())+len(a.GetAPIGroup())+len(a.GetAPIVersion())+
		len(a.GetResource())+len(a.GetSubresource())+len(a.GetName())+len(a.GetPath()) >= longest
}

// links are the authorizers of a chain, in order.
type links []link

// link is one authorizer: a webhook, or an authorizer that decides in process.
type link struct {
	name string
	// kind is the authorizer type in decision metrics. "" means that its decisions are not counted.
	kind    string
	webhook *webhook
	local   authorizer.Authorizer
	// userOnly means that local decides by the user alone.
	userOnly bool
}

// lookup returns the chain's decision if that needs no round trip: each webhook has a cached decision, or its match conditions
// exclude the question. Otherwise, or on any error, ok is false, no metric has been counted, and the caller must ask the chain.
func (l links) lookup(ctx context.Context, c check) (v chainDecision, ok bool) {
	defer func() {
		if recover() != nil {
			v, ok = chainDecision{}, false // The chain panics in the same way, and reports it as a panic.
		}
	}()
	if len(l) == 0 {
		return chainDecision{}, false
	}
	var reasons []string
	var excluded []*webhook
	v.source = sourceLocal
	for i := range l {
		one := &l[i]
		o, known := one.lookup(ctx, c)
		if !known || o.err != nil {
			return chainDecision{}, false
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
			return chainDecision{}, false
		}
		v.reason, v.by = o.reason, one.name
		v.skipped = count(ctx, excluded)
		return v, true
	}
	v.reason = strings.Join(reasons, "\n")
	v.skipped = count(ctx, excluded)
	return v, true
}

// lookup returns the decision of the authorizer if that needs no round trip.
func (l *link) lookup(ctx context.Context, c check) (authorizerDecision, bool) {
	if l.webhook != nil {
		return l.webhook.lookup(c)
	}
	of := &c.withoutVerb
	if !l.userOnly {
		whole := c // Only this copy is on the heap.
		of = &whole
	}
	decision, reason, err := l.local.Authorize(ctx, of)
	return authorizerDecision{decision: decision, reason: reason, err: err}, true
}

// decided counts a decision as k8s.io/apiserver's InstrumentedAuthorizer does in the chain.
func (l *link) decided(decision string) {
	if l.kind != "" {
		metrics.RecordAuthorizationDecision(l.kind, l.name, decision)
	}
}

// count counts webhooks that a match condition excluded, as k8s.io/apiserver's webhook authorizer does. It returns their names, separated
// by commas.
func count(ctx context.Context, excluded []*webhook) string {
	var names string
	for i, w := range excluded {
		w.metrics.MatcherMetrics.RecordAuthorizationMatchConditionExclusion(ctx, "Webhook", w.name)
		if i > 0 {
			names += ","
		}
		names += w.name // One name, the usual case, needs no allocation.
	}
	return names
}

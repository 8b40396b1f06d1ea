package authz

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

// decisionCache has the decisions of one authorizer until they expire. When it has size entries, it evicts one that has expired or that
// was not read lately. Evicting exactly the least recently used one would need a write lock for every read.
type decisionCache struct {
	size int

	mu    sync.RWMutex
	byKey map[key]*cacheEntry
	// ring has the same entries as byKey, in the order of arrival. hand is the position where the next search for an entry to evict
	// starts.
	ring []*cacheEntry
	hand int
}

// cacheEntry is immutable, except for used.
type cacheEntry struct {
	authorizerDecision
	key   key
	end   time.Time
	index int // index in the ring
	used  atomic.Bool
}

func newDecisionCache(size int) *decisionCache {
	return &decisionCache{size: size, byKey: map[key]*cacheEntry{}}
}

// get returns the decision for a key if it has not expired at now. A decision has expired when now is its end.
func (c *decisionCache) get(q key, now time.Time) (authorizerDecision, bool) {
	c.mu.RLock()
	one := c.byKey[q]
	c.mu.RUnlock()
	if one == nil || !now.Before(one.end) {
		return authorizerDecision{}, false
	}
	if !one.used.Load() {
		one.used.Store(true)
	}
	return one.authorizerDecision, true
}

// put caches a decision until end. It replaces a decision with the same key.
func (c *decisionCache) put(q key, o authorizerDecision, now, end time.Time) {
	// The verb may be a substring of a much longer text, such as the body of a request. The copy lets that text be collected.
	q.verb = strings.Clone(q.verb)
	one := &cacheEntry{authorizerDecision: o, key: q, end: end}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch before := c.byKey[q]; {
	case before != nil:
		one.index = before.index
	case len(c.ring) < c.size:
		one.index = len(c.ring)
		c.ring = append(c.ring, nil)
	default:
		one.index = c.evict(now)
		delete(c.byKey, c.ring[one.index].key)
	}
	c.ring[one.index] = one
	c.byKey[q] = one
}

// evict returns the index of the next entry that has expired or that was not read since the hand passed it. The caller holds the
// lock.
func (c *decisionCache) evict(now time.Time) int {
	for {
		index := c.hand
		c.hand = (c.hand + 1) % len(c.ring)
		if one := c.ring[index]; !now.Before(one.end) || !one.used.Swap(false) {
			return index
		}
	}
}

// count returns how many decisions have not expired at now.
func (c *decisionCache) count(now time.Time) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for _, one := range c.ring {
		if now.Before(one.end) {
			n++
		}
	}
	return n
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
}

// lookup returns the chain's decision if that needs no round trip: each webhook has a cached decision, or its match conditions
// exclude the question. Otherwise, or on any error, ok is false, no metric has been counted, and the caller must ask the chain.
func (l links) lookup(ctx context.Context, c *check) (v chainDecision, ok bool) {
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
		count(ctx, excluded)
		return v, true
	}
	v.reason = strings.Join(reasons, "\n")
	count(ctx, excluded)
	return v, true
}

// lookup returns the decision of the authorizer if that needs no round trip.
func (l *link) lookup(ctx context.Context, c *check) (authorizerDecision, bool) {
	if l.webhook != nil {
		return l.webhook.lookup(c.key(), time.Now())
	}
	decision, reason, err := l.local.Authorize(ctx, c)
	return authorizerDecision{decision: decision, reason: reason, err: err}, true
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

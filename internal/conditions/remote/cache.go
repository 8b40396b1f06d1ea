package remote

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// mostCached is how many bytes of reviews and answers the cache has at most.
	mostCached = 32 << 20
	// largestCached is the largest review with its answer in bytes whose decision is cached. Users choose the texts in a review.
	largestCached = 64 << 10
	// overhead is what an entry takes beside its texts, in bytes.
	overhead = 1 << 10
)

// decisionCache has decisions until they expire. When it is full, it evicts the decision that was not used for the longest time. In contrast
// to LRUExpireCache it is bounded by bytes, because a peer chooses how large its decisions are. It is safe for concurrent use.
type decisionCache struct {
	clock cache.Clock

	mu      sync.Mutex
	bytes   int
	order   list.List // of *cached, the last used one first
	entries map[string]*list.Element
}

type cached struct {
	review   string
	decision authorizer.ConditionsAwareDecision
	bytes    int
	expires  time.Time
}

func newDecisionCache(clock cache.Clock) *decisionCache {
	return &decisionCache{clock: clock, entries: map[string]*list.Element{}}
}

// get returns the decision on a review if it has not expired.
func (c *decisionCache) get(review string) (authorizer.ConditionsAwareDecision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[review]
	if !ok {
		return authorizer.ConditionsAwareDecision{}, false
	}
	entry, ok := element.Value.(*cached)
	if !ok || !c.clock.Now().Before(entry.expires) {
		c.remove(element)
		return authorizer.ConditionsAwareDecision{}, false
	}
	c.order.MoveToFront(element)
	return entry.decision, true
}

// put caches a decision that came in an answer of a size, unless it is too large.
func (c *decisionCache) put(review string, decision authorizer.ConditionsAwareDecision, answer int, ttl time.Duration) {
	size := len(review) + answer
	if ttl <= 0 || size > largestCached {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.entries[review]; ok {
		c.remove(before)
	}
	entry := &cached{review: review, decision: decision, bytes: size + overhead, expires: c.clock.Now().Add(ttl)}
	c.entries[review] = c.order.PushFront(entry)
	c.bytes += entry.bytes
	for c.bytes > mostCached {
		c.remove(c.order.Back())
	}
}

// remove is called with mu held.
func (c *decisionCache) remove(element *list.Element) {
	if entry, ok := c.order.Remove(element).(*cached); ok {
		delete(c.entries, entry.review)
		c.bytes -= entry.bytes
	}
}

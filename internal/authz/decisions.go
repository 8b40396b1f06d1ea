package authz

import (
	"container/list"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// decisionCache has the decisions of one authorizer until they expire. The checks of a review share the user and the object, so the decisions
// about these are found together, once in a review. When the cache is full, it evicts the decisions about the user and the object that
// no review used for the longest time.
type decisionCache struct {
	// slot is the index in identity.held.
	slot  int
	size  int
	clock clock.PassiveClock

	mu sync.Mutex
	// about has an element of recent for each identity.
	about map[string]*list.Element
	// recent has the decisions by identity, the ones used last first. None of them is empty.
	recent *list.List
	// n is the number of decisions.
	n int
}

// decisions are the decisions about one identity. decisionCache.mu guards them.
type decisions struct {
	identity string
	// byQuestion is nil once the decisions are evicted.
	byQuestion map[verbAsked]timed
}

// verbAsked is the part of a key in which the checks of a review differ.
type verbAsked struct {
	verb    string
	generic bool
}

// timed is a decision with the end of its time. At that end it has expired.
type timed struct {
	authorizerDecision
	until time.Time
}

func newDecisionCache(slot, size int, clock clock.PassiveClock) *decisionCache {
	return &decisionCache{slot: slot, size: size, clock: clock, about: map[string]*list.Element{}, recent: list.New()}
}

// lookup returns the decision on a check if it has not expired.
func (c *decisionCache) lookup(of check) (authorizerDecision, bool) {
	q := verbAsked{of.verb, of.generic}
	if c.slot >= len(of.held) {
		return c.get(key{of.text(), of.verb, of.generic})
	}
	held := of.held[c.slot].Load()
	if held == nil {
		var few [512]byte
		if held = c.find(of.appendTo(few[:0])); held == nil {
			return authorizerDecision{}, false
		}
		of.held[c.slot].Store(held)
	}
	return c.in(held, q)
}

// get returns the decision for a key if it has not expired.
func (c *decisionCache) get(k key) (authorizerDecision, bool) {
	held := c.find([]byte(k.identity))
	if held == nil {
		return authorizerDecision{}, false
	}
	return c.in(held, verbAsked{k.verb, k.generic})
}

// find returns the decisions about an identity, nil if there are none.
func (c *decisionCache) find(identity []byte) *decisions {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.about[string(identity)] // This conversion allocates nothing.
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*decisions)
}

func (c *decisionCache) in(held *decisions, q verbAsked) (authorizerDecision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, known := held.byQuestion[q]
	if known && !c.clock.Now().Before(one.until) {
		delete(held.byQuestion, q)
		if c.n--; len(held.byQuestion) == 0 {
			c.evict(c.about[held.identity])
		}
		known = false
	}
	if !known {
		return authorizerDecision{}, false
	}
	return one.authorizerDecision, true
}

// put caches a decision for a positive time. It replaces a decision with the same key.
func (c *decisionCache) put(k key, decision authorizerDecision, ttl time.Duration) {
	// The verb may be a substring of a much longer text, such as the body of a request. The copy lets that text be collected.
	q := verbAsked{strings.Clone(k.verb), k.generic}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.about[k.identity]
	if e == nil {
		e = c.recent.PushFront(&decisions{identity: k.identity, byQuestion: map[verbAsked]timed{}})
		c.about[k.identity] = e
	} else {
		c.recent.MoveToFront(e)
	}
	held := e.Value.(*decisions)
	if _, again := held.byQuestion[q]; !again {
		c.n++
	}
	for c.n > c.size && c.recent.Back() != e {
		c.evict(c.recent.Back())
	}
	if c.n > c.size {
		// One user has asked about one object with more verbs than the cache can hold.
		clear(held.byQuestion)
		c.n = 1
	}
	held.byQuestion[q] = timed{decision, c.clock.Now().Add(ttl)}
}

// evict removes the decisions about one identity. A review that has found them finds nothing there any more.
func (c *decisionCache) evict(e *list.Element) {
	held := e.Value.(*decisions)
	c.n -= len(held.byQuestion)
	held.byQuestion = nil
	c.recent.Remove(e)
	delete(c.about, held.identity)
}

// count returns how many decisions have not expired.
func (c *decisionCache) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, n := c.clock.Now(), 0
	for _, e := range c.about {
		for _, one := range e.Value.(*decisions).byQuestion {
			if now.Before(one.until) {
				n++
			}
		}
	}
	return n
}

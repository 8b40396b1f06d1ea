package authz

import (
	"sync"
	"time"
)

// cacheSize is how many answers k8s.io/apiserver's webhook authorizer keeps at most. The one that was
// used least recently goes first.
const cacheSize = 8192

// expiries says how many answers a cache holds that does not say so itself: it knows when each was put
// there and for how long. An answer is asked for anew only once it has expired, so that none is counted
// twice; one that was thrown out for lack of room is counted until the ring comes round to it.
type expiries struct {
	mu   sync.Mutex
	ring []time.Time
	next int
}

func (e *expiries) add(end time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ring) < cacheSize {
		e.ring = append(e.ring, end)
		return
	}
	e.ring[e.next] = end
	e.next = (e.next + 1) % cacheSize
}

// count returns how many have not expired.
func (e *expiries) count(now time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, end := range e.ring {
		if end.After(now) {
			n++
		}
	}
	return n
}

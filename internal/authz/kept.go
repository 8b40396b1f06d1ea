package authz

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// cacheSize is how many answers are kept at most of each webhook, as many as k8s.io/apiserver's own
	// authorizer keeps.
	cacheSize = 8192

	// longest is the length from which on attributes are too long for answers to be kept, as there.
	longest = 10000
)

// opinion is what one authorizer says to a question. The zero opinion denies.
type opinion struct {
	decision authorizer.Decision
	reason   string
	// err is of an answer that contradicts itself. Whoever fails to answer has no opinion that is kept.
	err error
	// excluded: no opinion, for the webhook's match conditions leave it out.
	excluded bool
}

// kept holds opinions of one authorizer until they expire. It is full at size, and then one goes that has
// expired or that nobody asked for lately: exactly the least recent would have whoever reads wait for
// each other.
type kept struct {
	size int

	mu    sync.RWMutex
	byKey map[key]*keptOpinion
	// ring has the same in the order in which they came; hand is where room is looked for next.
	ring []*keptOpinion
	hand int
}

// keptOpinion does not change but for used.
type keptOpinion struct {
	opinion
	key   key
	end   time.Time
	place int // in the ring
	used  atomic.Bool
}

func newKept(size int) *kept { return &kept{size: size, byKey: map[key]*keptOpinion{}} }

// get returns an opinion that counts at now: before its end, and not at it.
func (k *kept) get(q key, now time.Time) (opinion, bool) {
	k.mu.RLock()
	one := k.byKey[q]
	k.mu.RUnlock()
	if one == nil || !now.Before(one.end) {
		return opinion{}, false
	}
	if !one.used.Load() {
		one.used.Store(true)
	}
	return one.opinion, true
}

// put keeps an opinion until end, in place of what it has under the key.
func (k *kept) put(q key, o opinion, now, end time.Time) {
	// A verb may be part of a text that is much longer, such as the body of a request.
	q.verb = strings.Clone(q.verb)
	one := &keptOpinion{opinion: o, key: q, end: end}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch before := k.byKey[q]; {
	case before != nil:
		one.place = before.place
	case len(k.ring) < k.size:
		one.place = len(k.ring)
		k.ring = append(k.ring, nil)
	default:
		one.place = k.room(now)
		delete(k.byKey, k.ring[one.place].key)
	}
	k.ring[one.place] = one
	k.byKey[q] = one
}

// room returns the next place whose opinion has expired or was not asked for since the hand was there last.
// It is called with the lock held.
func (k *kept) room(now time.Time) int {
	for {
		place := k.hand
		k.hand = (k.hand + 1) % len(k.ring)
		if one := k.ring[place]; !now.Before(one.end) || !one.used.Swap(false) {
			return place
		}
	}
}

// count returns how many count at now.
func (k *kept) count(now time.Time) int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	n := 0
	for _, one := range k.ring {
		if now.Before(one.end) {
			n++
		}
	}
	return n
}

// tooLong is about questions whose answers are not kept: whoever asks may make these texts as long as it
// likes.
func tooLong(a authorizer.Attributes) bool {
	return len(a.GetNamespace())+len(a.GetVerb())+len(a.GetAPIGroup())+len(a.GetAPIVersion())+
		len(a.GetResource())+len(a.GetSubresource())+len(a.GetName())+len(a.GetPath()) >= longest
}

// unkept are attributes that are too long for k8s.io/apiserver's authorizer, by a path that no question
// about a resource is asked with. Else it would hold memory for answers that have expired at once.
type unkept struct {
	authorizer.Attributes
	path string
}

// GetPath returns the path.
func (u unkept) GetPath() string {
	if u.IsResourceRequest() {
		return u.path
	}
	return u.Attributes.GetPath()
}

package authz

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// cacheSize is the maximum number of cached decisions of each webhook, the same as in k8s.io/apiserver's webhook authorizer.
	cacheSize = 8192

	// longest bounds the length of attributes, as in k8s.io/apiserver: decisions about attributes of this length or longer are not
	// cached.
	longest = 10000
)

// opinion is the decision of one authorizer about a question. The zero opinion denies.
type opinion struct {
	decision authorizer.Decision
	reason   string
	// err is set for an answer that contradicts itself. An authorizer that fails to answer has no opinion in the cache.
	err error
	// excluded means NoOpinion because the webhook's match conditions exclude the question.
	excluded bool
}

// kept caches the opinions of one authorizer until they expire. When it has size entries, it evicts one that has expired or that
// was not read lately. Evicting exactly the least recently used one would need a write lock for every read.
type kept struct {
	size int

	mu    sync.RWMutex
	byKey map[key]*keptOpinion
	// ring has the same entries as byKey, in the order of arrival. hand is the position where the next search for an entry to evict
	// starts.
	ring []*keptOpinion
	hand int
}

// keptOpinion is immutable, except for used.
type keptOpinion struct {
	opinion
	key   key
	end   time.Time
	place int // index in the ring
	used  atomic.Bool
}

func newKept(size int) *kept { return &kept{size: size, byKey: map[key]*keptOpinion{}} }

// get returns the opinion for a key if it has not expired at now. An opinion has expired when now is its end.
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

// put caches an opinion until end. It replaces an opinion with the same key.
func (k *kept) put(q key, o opinion, now, end time.Time) {
	// The verb may be a substring of a much longer text, such as the body of a request. The copy lets that text be collected.
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

// room returns the index of the next entry that has expired or that was not read since the hand passed it. The caller holds the
// lock.
func (k *kept) room(now time.Time) int {
	for {
		place := k.hand
		k.hand = (k.hand + 1) % len(k.ring)
		if one := k.ring[place]; !now.Before(one.end) || !one.used.Swap(false) {
			return place
		}
	}
}

// count returns how many opinions have not expired at now.
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

// tooLong reports whether the attributes are too long to be cached. Users choose these texts, and could make them of any length.
func tooLong(a authorizer.Attributes) bool {
	return len(a.GetNamespace())+len(a.GetVerb())+len(a.GetAPIGroup())+len(a.GetAPIVersion())+
		len(a.GetResource())+len(a.GetSubresource())+len(a.GetName())+len(a.GetPath()) >= longest
}

// unkept makes attributes too long for the cache of k8s.io/apiserver's authorizer, by a long path. No question about a resource has
// a path. Without this, that authorizer would hold memory for decisions that expire at once.
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

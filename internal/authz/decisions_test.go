package authz

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestP8_TheCacheIsBounded(t *testing.T) {
	const size = 8
	clock := clocktesting.NewFakePassiveClock(time.Now())
	numbered := func(i int) key { return key{identity: strconv.Itoa(i), verb: "update"} }
	c := newDecisionCache(0, size, clock)
	for i := range 100 * size {
		c.put(numbered(i), authorizerDecision{reason: strconv.Itoa(i)}, time.Minute)
		// The first is read all the time, so it stays.
		if _, ok := c.get(numbered(0)); !ok {
			t.Fatalf("the latest answer is not cached after %d", i)
		}
		// The same key again takes no further entry.
		c.put(numbered(i), authorizerDecision{reason: "again " + strconv.Itoa(i)}, time.Minute)
		if want := min(i+1, size); c.count() != want {
			t.Fatalf("after %d: %d counted, want %d", i+1, c.count(), want)
		}
		if got, ok := c.get(numbered(i)); !ok || got.reason != "again "+strconv.Itoa(i) {
			t.Fatalf("%d is %+v", i, got)
		}
	}
	// A decision expires at the end of its time, and not before.
	for after, want := range map[time.Duration]int{time.Minute - time.Nanosecond: size, time.Minute: 0} {
		clock := clocktesting.NewFakePassiveClock(time.Now())
		c := newDecisionCache(0, size, clock)
		for i := range size {
			c.put(numbered(i), authorizerDecision{}, time.Minute)
		}
		clock.SetTime(clock.Now().Add(after))
		if _, ok := c.get(numbered(0)); ok != (want > 0) || c.count() != want {
			t.Errorf("after %s: %t, %d are cached, want %d", after, ok, c.count(), want)
		}
	}
}

// A user who asks about one object with more verbs than the cache can hold does not make it grow, and the latest decision is cached.
func TestP8_TheCacheIsBoundedForOneUserAndObject(t *testing.T) {
	const size = 8
	c := newDecisionCache(0, size, clocktesting.NewFakePassiveClock(time.Now()))
	c.put(key{identity: "another", verb: "update"}, authorizerDecision{}, time.Minute)
	for i := range 100 * size {
		k := key{identity: "u", verb: strconv.Itoa(i)}
		c.put(k, authorizerDecision{reason: k.verb}, time.Minute)
		if got, ok := c.get(k); !ok || got.reason != k.verb || c.count() > size || c.count() != c.n {
			t.Fatalf("%d: %+v, %t, %d counted, %d known", i, got, ok, c.count(), c.n)
		}
	}
}

// A review that has found decisions uses none that was evicted or has expired meanwhile.
func TestP8_AReviewUsesNoDecisionThatIsGone(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	c := newDecisionCache(0, 1, clock)
	of := &newRequestAuthorizer(nil, authorizer.AttributesRecord{}, "alice", "", nil, nil).of
	first, second := check{identity: of, verb: "update"}, check{identity: of, verb: "patch"}
	c.put(first.key(), authorizerDecision{reason: "first"}, time.Minute)
	if got, ok := c.lookup(first); !ok || got.reason != "first" {
		t.Fatalf("%+v, %t", got, ok)
	}
	if got, ok := c.lookup(second); ok {
		t.Fatalf("another verb: %+v", got)
	}
	c.put(key{identity: "another"}, authorizerDecision{}, time.Minute)
	if got, ok := c.lookup(first); ok || c.count() != 1 {
		t.Errorf("evicted: %+v, %d are cached", got, c.count())
	}
	c = newDecisionCache(1, 1, clock)
	c.put(first.key(), authorizerDecision{}, time.Minute)
	if _, ok := c.lookup(first); !ok {
		t.Fatal("is not cached")
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	if got, ok := c.lookup(first); ok || c.count() != 0 || c.n != 0 {
		t.Errorf("expired: %+v, %d are cached", got, c.n)
	}
}

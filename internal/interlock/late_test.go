package interlock

import (
	"slices"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// TestA5_AServerThatKeepsAnEarlierVersionGetsANewState: the next write of the object makes it read the object again.
func TestA5_AServerThatKeepsAnEarlierVersionGetsANewState(t *testing.T) {
	for _, fault := range []string{"has no state", "passes"} {
		w := newWorld(t, true)
		w.prove(t)
		before := webhooks.State(w.configuration)
		w.apis[0].set(always(fault))
		for range 2 {
			w.round(t.Context())
			w.clock.Step(renewAfter - 1)
			w.round(t.Context())
		}
		if w.writes != 1 {
			t.Errorf("%s: %d writes before the time", fault, w.writes)
		}
		w.clock.Step(1)
		w.round(t.Context())
		w.apis[0].set(always(""))
		w.round(t.Context())
		if after := webhooks.State(w.configuration); w.writes != 2 || after == before || w.Status() != nil {
			t.Errorf("%s: state %q after %q, %d writes: %v", fault, after, before, w.writes, w.Status())
		}
	}
}

// TestA5_NewStatesBecomeRare: some servers never load one.
func TestA5_NewStatesBecomeRare(t *testing.T) {
	var l late
	var pauses []time.Duration
	now, last, state := begin(), begin(), "a"
	for range 3600 {
		if l.is(state, now) {
			pauses, last, state = append(pauses, now.Sub(last)), now, state+"a"
		}
		now = now.Add(time.Second)
	}
	// It counts from the first probe with the new state, which is a second later here.
	want := []time.Duration{10 * time.Second, 21 * time.Second, 41 * time.Second, 81 * time.Second, 161 * time.Second, 301 * time.Second, 301 * time.Second}
	if len(pauses) < len(want) || !slices.Equal(pauses[:len(want)], want) {
		t.Errorf("pauses are %v", pauses)
	}
}

// TestA5_AVersionThatDoesNotEnforceEndsAState: it has the path of the state that it had before, and the stored version may become that one again.
func TestA5_AVersionThatDoesNotEnforceEndsAState(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	right := w.configuration.DeepCopy()
	loose := right.DeepCopy()
	loose.Generation, loose.Webhooks[0].Rules = right.Generation+1, nil
	w.ConfigurationChanged(loose)
	w.ConfigurationChanged(right) // As after a restore of etcd.
	w.clock.Step(time.Second)
	w.set(func() { w.loads = false })
	w.round(t.Context())
	w.mustBe(t, false, "restored")
	if webhooks.State(w.configuration) == webhooks.State(right) {
		t.Error("a state that a loose version has counts again")
	}
	w.load()
	w.round(t.Context())
	w.mustBe(t, true, "the new state is loaded")
}

// TestA5_AnotherClientIsAnsweredEverMoreRarely: a client that removes the webhook for probes at each change.
func TestA5_AnotherClientIsAnsweredEverMoreRarely(t *testing.T) {
	w := newWorld(t, true)
	for range 100 {
		w.set(func() { w.configuration.Generation++ })
		w.round(t.Context())
		w.clock.Step(100 * time.Millisecond)
	}
	if w.writes < 4 || w.writes > 8 {
		t.Errorf("%d writes in ten seconds", w.writes)
	}
	w.clock.Step(lastSpace)
	w.prove(t)
}

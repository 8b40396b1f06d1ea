//go:build integration

package faults

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

const (
	// recoverWithin limits the time from the end of a fault until all writers succeed again.
	recoverWithin = 40 * time.Second
	// steadyFor is the time without a failed permitted write after which the recovery is complete.
	steadyFor = 1500 * time.Millisecond
	// slack is the time for which two busy cores may delay a writer without any fault.
	slack = 2500 * time.Millisecond
)

// fault is a failure of a part of the system, and its repair.
type fault struct {
	name string
	// begin causes the fault, end repairs it; either may be nil.
	begin, end func(t *testing.T, c *scene)
	// lasts is the duration of the fault.
	lasts time.Duration
	// generic says that the fault also blocks users with generic verbs on resources without barriers while it lasts, because the API server
	// itself is not available.
	generic bool
	// spared says that no user is refused a permitted write: the fault must have no effect on users.
	spared bool
	// check examines the events during the fault. It returns the duration of an effect that had to end.
	check func(t *testing.T, c *scene, began time.Time, during []event) time.Duration
	// window is the time after a tampering in which forbidden writes may be stored. It is zero unless they cannot be prevented.
	window time.Duration
}

// play causes a fault, waits for the recovery, and checks the requirements for every fault.
func (c *scene) play(t *testing.T, f fault) {
	t.Helper()
	if !c.settled {
		c.settle(t, time.Now())
	}
	c.settled = false
	c.awaitBarrier(t)
	c.auditor.barriersDown.Store(false)
	c.journal.clear()
	c.stall.Store(0)
	began := time.Now()
	if f.begin != nil {
		f.begin(t, c)
	}
	time.Sleep(f.lasts)
	during := c.journal.since(began)
	ended := time.Now()
	r := report{fault: f.name}
	if f.check != nil {
		r.window = f.check(t, c, began, during)
	}
	if f.end != nil {
		f.end(t, c)
	}
	if f.window > 0 {
		for _, remake := range c.remake {
			remake(t)
		}
	}
	recovered := c.settle(t, ended)
	now := time.Now()
	events := c.journal.since(began)
	r.generic, r.guarded, r.recovery = blocked(events, generic, began, now), blocked(events, guarded, began, now), recovered.Sub(ended)
	r.count(events)
	c.judge(t, f, &r, events, now.Sub(began))
	c.reports = append(c.reports, r)
	c.settled = true
}

// judge checks that a fault had only its permitted effects.
func (c *scene) judge(t *testing.T, f fault, r *report, events []event, took time.Duration) {
	t.Helper()
	c.sweep(t)
	found := c.auditor.take()
	r.landed = len(found)
	for i, finding := range found {
		after := finding.at.Sub(c.tampered)
		if f.window > 0 {
			r.window = max(r.window, after)
		}
		if (f.window == 0 || after > f.window) && i < 5 {
			t.Errorf("%s: a forbidden write landed at %s: %s", f.name, finding.at.Format(time.StampMilli), finding.what)
		}
	}
	// A pause of the machine itself also delays users.
	slack := slack + time.Duration(c.stall.Load())
	limits := map[string]struct{ was, limit time.Duration }{
		"generic verbs": {r.generic, slack},
		"generic verbs on a resource with a barrier": {r.guarded, took - steadyFor + slack},
	}
	if f.generic {
		limits["generic verbs"] = limits["generic verbs on a resource with a barrier"]
	}
	for held, is := range limits {
		if is.was > is.limit {
			t.Errorf("%s: users with %s could not write for %s", f.name, held, is.was)
		}
	}
	if !f.spared {
		return
	}
	for _, e := range events {
		if e.may && e.outcome != allowed {
			t.Errorf("%s: %s %s: %v", f.name, e.writer, e.attempt, e.err)
			return
		}
	}
}

// settle waits until every permitted write succeeds and none of them has failed for a while. It returns the time of the last failure after
// since, or since if there was none.
func (c *scene) settle(t *testing.T, since time.Time) time.Time {
	t.Helper()
	var last time.Time
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("fieldperm's logs end in:\n" + c.WebhookLogTail())
		}
	})
	await(t, recoverWithin, func() error {
		var failure event
		last = since
		good := map[string]time.Time{}
		events := c.journal.since(time.Time{})
		for _, e := range events {
			switch {
			case !e.may || e.end.Before(since):
			case e.outcome == allowed:
				good[e.writer+" "+e.attempt] = e.end
			case e.end.After(last):
				last, failure = e.end, e
			}
		}
		for _, w := range c.writers {
			for _, a := range w.attempts {
				if a.may && !good[w.name+" "+a.name].After(last) {
					return fmt.Errorf("%s has not done %q again since; last failure: %s %q: %w", w.name, a.name, failure.writer, failure.attempt, orNone(failure.err))
				}
			}
		}
		if quiet := time.Since(last); quiet < steadyFor {
			return fmt.Errorf("quiet for %s only", quiet)
		}
		return nil
	})
	return last
}

var errNone = errors.New("none")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// sweep reads the current state of all objects.
func (c *scene) sweep(t *testing.T) {
	t.Helper()
	for _, path := range watched {
		await(t, recoverWithin, func() error {
			if c.auditor.list(t.Context(), path) == "" {
				return fmt.Errorf("%s cannot be read", path)
			}
			return nil
		})
	}
}

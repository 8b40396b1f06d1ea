package soak

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// event is a time in which failures have a reason.
type event struct {
	name       string
	begin, end time.Time // The zero end: it lasts.
}

// outcome is what a request got.
type outcome struct {
	name       string
	begin, end time.Time
	// answer and right are the given answer and those that were right meanwhile.
	answer, right answers
	// unproven is a question that was refused because enforcement was not proven: right, though the user holds the marker. A machine without
	// processor time for probes causes it too.
	unproven bool
	// starved is an error because kube-apiserver did not answer a check in time.
	starved bool
	// killed is set if the request was sent to a process that was killed.
	killed bool
	// detail is printed with a fault.
	detail func() string
}

// judge counts outcomes. Its methods may be called concurrently.
type judge struct {
	mu     sync.Mutex
	events []event
	counts counts
	// unexplained are failures outside of the events so far: an event that is noted later does not explain them.
	faults []string
	// fatal is called with the first wrong Allow.
	fatal func(string)
}

// counts are numbers of outcomes.
type counts struct {
	right, unproven, unprovenApart, killed, explained, starved int
	wrongAllows, wrongDenials, failures               int
}

func (c counts) String() string {
	return fmt.Sprintf("%d right; refused for want of a proof: %d in events, %d else; failed: %d on connections to killed processes, %d while kube-apiserver was away, %d because it did not answer a check in time; WRONG: %d allowed, %d denied; FAILED: %d",
		c.right, c.unproven, c.unprovenApart, c.killed, c.explained, c.starved, c.wrongAllows, c.wrongDenials, c.failures)
}

// maxFaults limits the report.
const maxFaults = 20

// during notes an event that lasts until the returned function is called.
func (j *judge) during(name string) (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := len(j.events)
	j.events = append(j.events, event{name: name, begin: time.Now()})
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.events[i].end = time.Now()
	}
}

// overlaps reports whether an event, whose name begins with name, was during a request.
func (j *judge) overlaps(name string, begin, end time.Time) bool {
	for i := len(j.events) - 1; i >= 0; i-- {
		e := j.events[i]
		if strings.HasPrefix(e.name, name) && !e.begin.After(end) && (e.end.IsZero() || !e.end.Before(begin)) {
			return true
		}
	}
	return false
}

// away is the event in which fieldperm cannot ask kube-apiserver.
const away = "kube-apiserver"

// note judges one outcome.
func (j *judge) note(o outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fault := func(kind string) string {
		text := fmt.Sprintf("%s: %s at %s, after %s: the answer is %s, right is %s: %s", kind, o.name, o.begin.Format(time.TimeOnly), o.end.Sub(o.begin).Round(time.Microsecond), o.answer, o.right, o.detail())
		if len(j.faults) < maxFaults {
			j.faults = append(j.faults, text)
		}
		return text
	}
	switch {
	case o.answer&o.right != 0:
		j.counts.right++
	case o.answer == Allowed:
		j.counts.wrongAllows++
		if text := fault("WRONG ALLOW"); j.fatal != nil && j.counts.wrongAllows == 1 {
			j.fatal(text)
		}
	case o.unproven:
		if j.overlaps("", o.begin, o.end) {
			j.counts.unproven++
		} else {
			j.counts.unprovenApart++
		}
	case o.answer == Denied:
		j.counts.wrongDenials++
		fault("wrong denial")
	case o.killed:
		j.counts.killed++
	case j.overlaps(away, o.begin, o.end):
		j.counts.explained++
	case o.starved:
		j.counts.starved++
	default:
		j.counts.failures++
		fault("failure")
	}
}

// soFar returns the counts and the faults.
func (j *judge) soFar() (counts, []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts, j.faults
}

// within reports whether an event, whose name begins with name, is during a request.
func (j *judge) within(name string, begin, end time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.overlaps(name, begin, end)
}

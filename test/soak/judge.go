package soak

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
)

// away is the beginning of the names of events in which fieldperm cannot ask kube-apiserver.
const away = "kube-apiserver"

// event is a time in which something happens.
type event struct {
	name       string
	begin, end time.Time // The zero end: it lasts.
}

func (e event) overlaps(begin, end time.Time) bool {
	return !e.begin.After(end) && (e.end.IsZero() || !e.end.Before(begin))
}

// outcome is what a request got.
type outcome struct {
	name       string
	begin, end time.Time
	// answer and right are the answer and those that were right meanwhile.
	answer, right sender.Answer
	// unproven is a question that was refused because enforcement was not proven: right, although the user holds the marker.
	unproven bool
	// killed is set if the request was sent to a process that was killed.
	killed bool
	// late is set for an error because a time was over.
	late bool
	// detail is printed with a fault.
	detail func() string
}

// judge counts outcomes. Its methods may be called concurrently.
type judge struct {
	// report is called with each fault, the first ones of each kind, and fatal with the first wrong Allow.
	report, fatal func(string)
	// joined is how long a check may have been under way that a request joins: equal checks are asked once.
	joined time.Duration

	mu     sync.Mutex
	events []event
	// slow are the times in which kube-apiserver was slow to answer the test itself.
	slow []event
	// suspects are late outcomes that are not judged yet.
	suspects []outcome
	counts   counts
}

// counts are numbers of outcomes.
type counts struct {
	right int
	// unproven were refused for want of a proof in events, and unprovenElse at other times: a busy machine causes it too. Users are refused
	// then, as documented.
	unproven, unprovenElse int
	// killed failed on connections to killed processes, away while kube-apiserver was away, and slow while it was slow.
	killed, away, slow int
	// These are faults.
	wrongAllows, wrongDenials, failures int
}

func (c counts) faults() int { return c.wrongAllows + c.wrongDenials + c.failures }

func (c counts) String() string {
	return fmt.Sprintf("%d right; refused for want of a proof: %d in events, %d else; failed with a reason: %d on connections to killed processes, %d while kube-apiserver was away, %d while it was slow; wrong: %d allowed, %d denied; failed without a reason: %d",
		c.right, c.unproven, c.unprovenElse, c.killed, c.away, c.slow, c.wrongAllows, c.wrongDenials, c.failures)
}

// maxFaults limits the faults that are printed.
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

// within reports whether an event, whose name begins with name, is during a request.
func (j *judge) within(name string, begin, end time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.overlaps(name, begin, end)
}

func (j *judge) overlaps(name string, begin, end time.Time) bool {
	for _, e := range j.events {
		if strings.HasPrefix(e.name, name) && e.overlaps(begin, end) {
			return true
		}
	}
	return false
}

// note judges one outcome, or keeps it for settle.
func (j *judge) note(o outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case o.answer&o.right != 0:
		j.counts.right++
	case o.answer == sender.Allowed:
		j.counts.wrongAllows++
		text := j.fault("WRONG ALLOW", o)
		if j.counts.wrongAllows == 1 {
			j.fatal(text)
		}
	case o.unproven && j.overlaps("", o.begin, o.end):
		j.counts.unproven++
	case o.unproven:
		j.counts.unprovenElse++
	case o.answer == sender.Denied:
		j.counts.wrongDenials++
		j.fault("wrong denial", o)
	case o.killed:
		j.counts.killed++
	case j.overlaps(away, o.begin, o.end):
		j.counts.away++
	case o.late:
		j.suspects = append(j.suspects, o)
	default:
		j.counts.failures++
		j.fault("failure", o)
	}
}

// fault prints a fault, unless there were too many.
func (j *judge) fault(kind string, o outcome) string {
	text := fmt.Sprintf("%s: %s at %s, after %s: the answer is %s, right is %s: %s", kind, o.name, o.begin.Format(time.TimeOnly), o.end.Sub(o.begin).Round(time.Microsecond), o.answer, o.right, o.detail())
	if j.counts.faults() <= maxFaults {
		j.report(text)
	}
	return text
}

// wasSlow notes that kube-apiserver was slow to answer the test itself.
func (j *judge) wasSlow(begin, end time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.slow = append(j.slow, event{"slow", begin, end})
}

// settle judges the late outcomes that ended before a time, until which all slowness is noted: they have a reason if kube-apiserver was slow
// to answer the test too.
func (j *judge) settle(until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := j.suspects[:0]
	for _, o := range j.suspects {
		switch {
		case o.end.After(until):
			left = append(left, o)
		case j.wasSlowDuring(o):
			j.counts.slow++
		default:
			j.counts.failures++
			j.fault("failure", o)
		}
	}
	j.suspects = left
}

func (j *judge) wasSlowDuring(o outcome) bool {
	for _, e := range j.slow {
		if e.overlaps(o.begin.Add(-j.joined), o.end) {
			return true
		}
	}
	return false
}

// soFar returns the counts.
func (j *judge) soFar() counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// isLate reports whether an error says that a time was over.
func isLate(text string) bool {
	for _, one := range []string{"deadline exceeded", "Timeout exceeded", "context canceled", "did not complete within"} {
		if strings.Contains(text, one) {
			return true
		}
	}
	return false
}

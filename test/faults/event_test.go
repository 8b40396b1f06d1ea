//go:build integration

package faults

import (
	"slices"
	"sync"
	"time"
)

// class groups writers by the permission that lets them write.
type class string

const (
	// granular users hold the marker and verbs for some fields, and no generic verb.
	granular class = "granular"
	// generic users hold generic verbs, on resources without barriers.
	generic class = "generic"
	// guarded users hold generic verbs on a resource that has a barrier.
	guarded class = "guarded"
)

// outcome is the result of a write for its user.
type outcome int

const (
	errored outcome = iota
	refused
	allowed
)

// event is one attempt to write.
type event struct {
	writer, attempt string
	class           class
	// may says that the writer holds the verbs that the write needs.
	may        bool
	begin, end time.Time
	outcome    outcome
	err        error
}

// journal has every attempt since it was last cleared.
type journal struct {
	mu     sync.Mutex
	events []event
}

func (j *journal) add(e event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// since returns the events that started at t or later.
func (j *journal) since(t time.Time) []event {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []event
	for _, e := range j.events {
		if !e.begin.Before(t) {
			out = append(out, e)
		}
	}
	return out
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = nil
}

// blocked returns the longest time between from and to in which a writer of the class had no success, over all writers of the class. The
// pause between two writes counts.
func blocked(events []event, c class, from, to time.Time) time.Duration {
	last := map[string]time.Time{}
	var longest time.Duration
	sorted := slices.SortedFunc(slices.Values(events), func(a, b event) int { return a.end.Compare(b.end) })
	for _, e := range sorted {
		if e.class != c || !e.may {
			continue
		}
		if _, seen := last[e.writer]; !seen {
			last[e.writer] = from
		}
		if e.outcome == allowed && e.end.Before(to) {
			longest = max(longest, e.end.Sub(last[e.writer]))
			last[e.writer] = e.end
		}
	}
	for _, t := range last {
		longest = max(longest, to.Sub(t))
	}
	return longest
}

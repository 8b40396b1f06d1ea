package soak

import (
	"sync"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
)

// truth has the right answers of a request, over time. Its methods may be called concurrently.
type truth struct {
	mu sync.Mutex
	// turns are in order of time. Each holds until the next one.
	turns []turn
}

type turn struct {
	at    time.Time
	right sender.Answer
}

// always is a truth that may change later.
func always(right sender.Answer) *truth { return &truth{turns: []turn{{right: right}}} }

// change begins the window in which the old answers are right and the new ones too.
func (t *truth) change(to sender.Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = append(t.turns, turn{time.Now(), t.turns[len(t.turns)-1].right | to})
}

// settle ends the window.
func (t *truth) settle(to sender.Answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = append(t.turns, turn{time.Now(), to})
}

// during returns the answers that are right for a request between two times: those of every turn that held meanwhile.
func (t *truth) during(begin, end time.Time) sender.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out sender.Answer
	for i := len(t.turns) - 1; i >= 0; i-- {
		if !t.turns[i].at.After(end) {
			out |= t.turns[i].right
		}
		if !t.turns[i].at.After(begin) {
			break
		}
	}
	return out
}

// change is what a truth becomes.
type change struct {
	of *truth
	to sender.Answer
}

// changing begins the window of the changes, calls f, and ends the window unless f fails.
func changing(f func() error, changes ...change) error {
	for _, one := range changes {
		one.of.change(one.to)
	}
	if err := f(); err != nil {
		return err
	}
	for _, one := range changes {
		one.of.settle(one.to)
	}
	return nil
}

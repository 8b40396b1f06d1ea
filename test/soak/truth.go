package soak

import (
	"strings"
	"sync"
	"time"
)

// answers is a set of answers. The zero value has none, so that no answer is right.
type answers uint8

// The answers of fieldperm. An answer of Errored is no decision: a 5xx, or an admission response that is no 403.
const (
	Allowed answers = 1 << iota
	Denied
	Errored
)

func (a answers) String() string {
	var out []string
	for one, name := range map[answers]string{Allowed: "allowed", Denied: "denied", Errored: "an error"} {
		if a&one != 0 {
			out = append(out, name)
		}
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, " or ")
}

// truth has the right answers of a request, over time. Its methods may be called concurrently.
type truth struct {
	mu sync.Mutex
	// turns are in order of time. Each holds until the next one.
	turns []turn
}

type turn struct {
	at    time.Time
	right answers
}

// always is a truth that may change later.
func always(right answers) *truth { return &truth{turns: []turn{{right: right}}} }

// change begins the window in which the old answers are right and the new ones too.
func (t *truth) change(to answers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = append(t.turns, turn{time.Now(), t.turns[len(t.turns)-1].right | to})
}

// settle ends the window.
func (t *truth) settle(to answers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = append(t.turns, turn{time.Now(), to})
}

// during returns the answers that are right for a request between two times: those of every turn that held meanwhile.
func (t *truth) during(begin, end time.Time) answers {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out answers
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

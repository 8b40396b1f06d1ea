package interlock

import "time"

// A kube-apiserver can keep an earlier version of an object until its next change. So fieldperm writes a new state if a server has another one than the
// stored for renewAfter. The pause doubles up to renewAtMost, for servers to which that is no help.
const renewAfter, renewAtMost = 10 * time.Second, 5 * time.Minute

// late knows since when a server has another state than the stored one. The zero late knows none.
type late struct {
	state string
	since time.Time
	pause time.Duration
}

// is reports whether a state must be replaced, which a server does not have now.
func (l *late) is(state string, now time.Time) bool {
	if l.state != state {
		l.state, l.since = state, now
	}
	if now.Sub(l.since) < max(l.pause, renewAfter) {
		return false
	}
	l.since, l.pause = now, min(2*max(l.pause, renewAfter), renewAtMost)
	return true
}

// spaced bounds how often a state is written, for other clients that change the configuration as often. Single changes need not wait.
type spaced struct {
	at    time.Time
	pause time.Duration
}

// The first pause doubles up to the last one. It ends with a longer time without a write.
const firstSpace, lastSpace = 250 * time.Millisecond, 10 * time.Second

// wait reports whether nothing may be written now.
func (s *spaced) wait(now time.Time) bool { return now.Before(s.at.Add(s.pause)) }

// wrote records a write.
func (s *spaced) wrote(now time.Time) {
	switch {
	case now.Sub(s.at) > 2*lastSpace:
		s.pause = 0
	default:
		s.pause = min(max(2*s.pause, firstSpace), lastSpace)
	}
	s.at = now
}

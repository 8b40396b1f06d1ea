package interlock

import "time"

// A kube-apiserver can keep an earlier version of an object until its next change. So fieldperm writes a new state if a server has another one than the
// stored for renewAfter. The pause doubles up to renewAtMost, for servers to which that is no help.
const renewAfter, renewAtMost = 10 * time.Second, 5 * time.Minute

// late knows since when a server has another state than the stored one.
type late struct {
	state string
	since time.Time
	pause time.Duration
}

// is reports whether a new state must be written. missing says that a server has another state than this one.
func (l *late) is(state string, missing bool, now time.Time) bool {
	switch {
	case !missing:
		*l = late{pause: renewAfter}
		return false
	case l.state != state:
		l.state, l.since = state, now
	}
	if now.Sub(l.since) < max(l.pause, renewAfter) {
		return false
	}
	l.since, l.pause = now, min(2*max(l.pause, renewAfter), renewAtMost)
	return true
}

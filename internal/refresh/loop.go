package refresh

import (
	"context"
	"time"
)

// Timing is when a Loop runs its work. Every duration must be set.
type Timing struct {
	// Interval is the longest time between two runs.
	Interval time.Duration
	// Settle is how long the loop collects changes before one run handles all of them.
	Settle time.Duration
	// FirstRetry is the delay before a failed run is repeated. The delay doubles with each further failure, up to LastRetry.
	FirstRetry, LastRetry time.Duration
}

// Loop repeats work. Make it with New.
type Loop struct {
	timing  Timing
	changed chan struct{}
}

// New returns a Loop. Run starts it.
func New(timing Timing) *Loop {
	return &Loop{timing: timing, changed: make(chan struct{}, 1)}
}

// Changed requests a run soon. It never blocks, and may be called before Run.
func (l *Loop) Changed() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Run runs work until the context ends: at once, after Changed, and at the interval. failed is called with every error, except
// errors after the context has ended.
func (l *Loop) Run(ctx context.Context, work func(context.Context) error, failed func(error)) {
	retry := l.timing.FirstRetry
	for {
		wait := l.timing.Interval
		if err := work(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			failed(err)
			wait, retry = retry, min(2*retry, l.timing.LastRetry)
		} else {
			retry = l.timing.FirstRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			continue
		case <-l.changed:
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.timing.Settle):
		}
		select {
		case <-l.changed: // The next run sees all changes until now.
		default:
		}
	}
}

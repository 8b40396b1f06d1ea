package refresh

import (
	"context"
	"time"
)

// Timing says when a Loop works. Every duration must be set.
type Timing struct {
	// Interval is how long nothing may happen.
	Interval time.Duration
	// Settle is how long changes may gather before one run answers them all.
	Settle time.Duration
	// FirstRetry is how soon a run that failed is repeated; each further one waits twice as long, up to
	// LastRetry.
	FirstRetry, LastRetry time.Duration
}

// Loop repeats a piece of work. Make it with New.
type Loop struct {
	timing  Timing
	changed chan struct{}
}

// New returns a Loop that does not run yet.
func New(timing Timing) *Loop {
	return &Loop{timing: timing, changed: make(chan struct{}, 1)}
}

// Changed asks for a run soon. It never blocks, and may be called before Run.
func (l *Loop) Changed() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Run works at once, on Changed and at the interval, until the context ends. failed is told of every
// error but those of a context that has ended.
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
		case <-l.changed: // What has changed until now the next run sees.
		default:
		}
	}
}

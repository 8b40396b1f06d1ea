package sender

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxFaults limits the number of faults in a report.
const maxFaults = 10

// Result counts the answers of a run whose requests have the same right answers all the time. Note may be called concurrently; the rest is for
// afterwards.
type Result struct {
	// Due are all requests. Failed ones have no decision: an error, or no answer in time. Unproven ones are refused questions.
	Due, Right, Wrong, Failed, Unproven int
	// LastFailure is the time of the last request that failed, after the begin.
	LastFailure time.Duration
	// Faults are the first requests that were answered wrongly or failed.
	Faults []string
	// Latencies start when a request is due.
	Latencies []time.Duration
	// Bytes are those of all bodies.
	Bytes int64
	// Took is the time until the last answer.
	Took time.Duration

	mu    sync.Mutex
	begin time.Time
}

// NewResult returns the result of a run that begins now.
func NewResult() *Result { return &Result{begin: time.Now()} }

// Note counts an answer.
func (r *Result) Note(e *Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := e.End.Sub(r.begin)
	r.Due++
	r.Bytes += int64(len(e.Body))
	r.Latencies = append(r.Latencies, e.End.Sub(e.Due))
	r.Took = max(r.Took, at)
	fault := e.Fault()
	switch {
	case fault == nil:
		r.Right++
		return
	case e.Unproven:
		r.Unproven++
		return
	case e.Err == nil:
		r.Wrong++
	default:
		r.Failed++
		r.LastFailure = max(r.LastFailure, at)
	}
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf("%s, after %s: %v", e.Name, at.Round(time.Millisecond), fault))
	}
}

// Add adds another result, of an earlier run.
func (r *Result) Add(other *Result) {
	r.Due += other.Due
	r.Right += other.Right
	r.Wrong += other.Wrong
	r.Failed += other.Failed
	r.Unproven += other.Unproven
	r.Bytes += other.Bytes
	r.Took += other.Took
	r.Latencies = append(r.Latencies, other.Latencies...)
	r.Faults = append(r.Faults, other.Faults...)
}

// At returns the latency that this share of the requests does not exceed.
func (r *Result) At(share float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	slices.Sort(r.Latencies)
	return r.Latencies[min(len(r.Latencies)-1, int(share*float64(len(r.Latencies))))].Round(10 * time.Microsecond)
}

func (r *Result) String() string {
	return fmt.Sprintf("%d requests, %d answered rightly, %d wrongly, %d failed, %d refused for want of a proof, %.0f a second over %s, %.1f KB each; latency p50 %s, p99 %s, max %s",
		r.Due, r.Right, r.Wrong, r.Failed, r.Unproven, float64(r.Due)/max(r.Took.Seconds(), 1e-9), r.Took.Round(time.Millisecond), float64(r.Bytes)/1024/float64(max(1, r.Due)), r.At(0.5), r.At(0.99), r.At(1))
}

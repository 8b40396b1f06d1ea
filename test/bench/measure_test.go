package bench

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// measure processes a body repeatedly. In addition to the time it reports the processor time, including garbage collection: that is the
// cost of a review, and it is nearly the same on a busy machine.
func measure(b *testing.B, body []byte, once func(context.Context) error) {
	b.Helper()
	// Fill the cache of decisions first.
	if err := once(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if err := once(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime is the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

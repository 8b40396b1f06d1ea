package bench

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// measure goes through a body again and again. Beside the time it reports what processors spent, those that collect
// garbage included: that is what a review costs, and it is nearly the same on a machine that has other things to do.
func measure(b *testing.B, body []byte, once func(context.Context) error) {
	b.Helper()
	// What is remembered is asked before.
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

// processorTime is what this process has used up.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

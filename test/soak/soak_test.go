//go:build integration

package soak

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

// The defaults are the small form: one round, without a verdict on growth.
var (
	duration = flag.Duration("duration", 5*time.Second, "how long the soak lasts at least; with -rounds=0, rounds go on until then")
	rounds   = flag.Int("rounds", 1, "number of rounds of events; 0 for as many as there is time")
	only     = flag.String("only", "", "only events whose name contains this")
	pause    = flag.Duration("pause", 0, "time before each event")
	hold     = flag.Duration("hold", 300*time.Millisecond, "how long a state between two changes lasts")
	ttl      = flag.Duration("ttl", time.Second, "how long fieldperm caches decisions")
	rate     = flag.Float64("rate", 300, "requests a second")
	every    = flag.Duration("every", time.Second, "time between two samples of the processes")
	growth   = flag.Bool("growth", false, "judge growth: it takes many minutes to show")
	samples  = flag.String("samples", "", "file for the samples, CSV")
	binaries = flag.String("bin", "", "directory of fieldperm's commands; empty to build them")
)

// TestSoak: no answer is wrong, no request fails without a reason, and the process that runs the longest does not grow.
func TestSoak(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	t.Setenv("GOGC", "") // Memory is judged as in a container, where Go's default is in force.
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c := &scene{t: t, ctx: ctx, mix: newMix(), fleet: &fleet{}, judge: &judge{
		joined: checkTimeout,
		report: func(text string) { t.Error(text) }, fatal: func(text string) { cancel(errors.New(text)) },
	}}
	c.start()
	recorder := c.newRecorder()

	var running sync.WaitGroup
	until, stop := context.WithCancel(ctx)
	defer stop()
	begin, skipped := time.Now(), 0
	running.Go(func() { skipped = c.load(until) })
	running.Go(func() { c.age(until) })
	running.Go(func() { c.write(until) })
	running.Go(func() { c.pulse(until) })
	running.Go(func() { recorder.run(until, *every) })
	err := c.play(begin)
	stop()
	running.Wait()
	took := time.Since(begin)
	c.judge.settle(time.Now())

	if err != nil {
		t.Error(err)
	}
	counts, sent := c.judge.soFar(), c.sent.Load()
	t.Logf("%d requests sent in %s, %.0f a second; %d were not sent, because the sender was late", sent, took.Round(time.Second), float64(sent)/took.Seconds(), skipped)
	t.Log(counts)
	if counts.faults() > 0 || counts.right == 0 {
		t.Errorf("%d faults, %d right answers", counts.faults(), counts.right)
	}
	recorder.report(t)
}

// newRecorder returns what samples the processes.
func (c *scene) newRecorder() *recorder {
	var out io.Writer = io.Discard
	if *samples != "" {
		file, err := os.Create(*samples)
		must(c.t, err)
		c.t.Cleanup(func() { must(c.t, file.Close()) })
		out = file
	}
	return &recorder{dir: c.s.Dir(), callers: c.callers, fleet: c.fleet, quiet: c.sender.Quiet, out: out}
}

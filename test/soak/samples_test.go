//go:build integration

package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/process"
)

// The quantities that are sampled.
const (
	resident   = "resident bytes"
	anonymous  = "anonymous bytes"
	liveHeap   = "live heap bytes"
	goroutines = "goroutines"
	files      = "open files"
	threads    = "threads"
	series     = "metrics series"
	processor  = "processor seconds"
)

var columns = []string{resident, anonymous, liveHeap, goroutines, files, threads, series, processor}

// judged are the quantities that must not grow. See docs/contributing/soak.md for the bounds.
var judged = []quantity{
	{resident, 0.10, 16 << 20},
	{anonymous, 0.10, 16 << 20},
	{liveHeap, 0.10, 4 << 20},
	{goroutines, 0.10, 10},
	{files, 0.10, 4},
	{threads, 0.10, 3},
	{series, 0.10, 20},
}

// life has the samples of one process.
type life struct {
	replica, pid int
	since        time.Time
	samples      []sample
}

// recorder samples the replicas that are ready.
type recorder struct {
	// dir is the directory of the stack.
	dir     string
	callers *callers
	fleet   *fleet
	// quiet calls a function while no request is under way.
	quiet     func(func())
	out       io.Writer
	mu        sync.Mutex
	lives     []*life
	lastFault error
}

func (r *recorder) run(ctx context.Context, every time.Duration) {
	fmt.Fprintf(r.out, "time,replica,pid,%s\n", strings.Join(columns, ","))
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		r.quiet(func() {
			for _, one := range r.fleet.all() {
				if err := r.sample(ctx, one); err != nil && ctx.Err() == nil {
					r.lastFault = err // The process may just have ended.
				}
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *recorder) sample(ctx context.Context, of *incarnation) error {
	pid, err := process.ID(r.dir, name(of.replica))
	if err != nil {
		return err
	}
	values := map[string]float64{}
	for column, read := range map[string]func(int) (int64, error){
		resident:  func(pid int) (int64, error) { return process.Memory(pid, process.Resident) },
		anonymous: func(pid int) (int64, error) { return process.Memory(pid, process.Anonymous) },
		files:     process.Files,
		threads:   process.Threads,
	} {
		value, err := read(pid)
		if err != nil {
			return err
		}
		values[column] = float64(value)
	}
	spent, err := process.ProcessorTime(pid)
	if err != nil {
		return err
	}
	values[processor] = spent.Seconds()
	if err := r.metrics(ctx, of, values); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var l *life
	for _, one := range r.lives {
		if one.pid == pid && one.replica == of.replica {
			l = one
		}
	}
	if l == nil {
		l = &life{replica: of.replica, pid: pid, since: time.Now()}
		r.lives = append(r.lives, l)
	}
	l.samples = append(l.samples, sample{time.Since(l.since), values})
	fmt.Fprintf(r.out, "%s,%d,%d", time.Now().Format(time.RFC3339), of.replica, pid)
	for _, column := range columns {
		fmt.Fprintf(r.out, ",%.0f", values[column])
	}
	fmt.Fprintln(r.out)
	return nil
}

func (r *recorder) metrics(ctx context.Context, of *incarnation, values map[string]float64) error {
	using := client(nil, r.callers.certified())
	defer using.CloseIdleConnections()
	code, body, err := get(ctx, using, "https://"+of.address+"/metrics")
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("metrics: %d", code)
	}
	for line := range strings.Lines(body) {
		if line == "\n" || line[0] == '#' {
			continue
		}
		values[series]++
		for metric, column := range map[string]string{"go_gc_heap_live_bytes ": liveHeap, "go_goroutines ": goroutines} {
			if rest, ok := strings.CutPrefix(line, metric); ok {
				if values[column], err = strconv.ParseFloat(strings.TrimSpace(rest), 64); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// oldest returns the process that ran the longest.
func (r *recorder) oldest() *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out *life
	for _, one := range r.lives {
		if out == nil || one.samples[len(one.samples)-1].at > out.samples[len(out.samples)-1].at {
			out = one
		}
	}
	return out
}

// name is the name of a replica in the directory of the stack.
func name(replica int) string {
	if replica == 0 {
		return "fieldperm-webhook"
	}
	return fmt.Sprintf("fieldperm-webhook-%d", replica+1)
}

// report prints how the process that ran the longest developed, and judges it. Its first sixth is its start.
func (r *recorder) report(t *testing.T) {
	t.Helper()
	l := r.oldest()
	if l == nil {
		t.Errorf("no process was sampled: %v", r.lastFault)
		return
	}
	warm := l.samples[len(l.samples)/6:]
	t.Logf("replica %d ran for %s: %d samples after the first sixth", l.replica, l.samples[len(l.samples)-1].at.Round(time.Second), len(warm))
	for _, q := range judged {
		got, err := trendOf(q, warm)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Log(got)
		if *growth && got.grows() {
			t.Errorf("%s: grows", q.name)
		}
	}
}

//go:build integration

package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fieldperm/fieldperm/test/process"
	"github.com/fieldperm/fieldperm/test/stack"
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
	{series, 0.02, 20},
}

// life has the samples of one process.
type life struct {
	replica, pid int
	since        time.Time
	samples      []sample
}

// recorder samples the replicas that are ready.
type recorder struct {
	s         *stack.Stack
	callers   *callers
	fleet     *fleet
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
	pid, err := process.ID(r.s.Dir(), name(of.replica))
	if err != nil {
		return err
	}
	values := map[string]float64{}
	for column, size := range map[string]string{resident: process.Resident, anonymous: process.Anonymous} {
		bytes, err := process.Memory(pid, size)
		if err != nil {
			return err
		}
		values[column] = float64(bytes)
	}
	for column, dir := range map[string]string{files: "fd", threads: "task"} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, dir))
		if err != nil {
			return err
		}
		values[column] = float64(len(entries))
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
	c := client(nil, r.callers.certified())
	defer c.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+of.address+"/metrics", nil)
	if err != nil {
		return err
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("metrics: %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		values[series]++
		for metric, column := range map[string]string{"go_gc_heap_live_bytes ": liveHeap, "go_goroutines ": goroutines} {
			if rest, ok := strings.CutPrefix(line, metric); ok {
				if values[column], err = strconv.ParseFloat(rest, 64); err != nil {
					return err
				}
			}
		}
	}
	return lines.Err()
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

package admission

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// TestP4_AReviewEndsAsWithAnOrdinaryContext: whether anything waits for the end or not.
func TestP4_AReviewEndsAsWithAnOrdinaryContext(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		gone     bool // The client has gone.
		end      bool // The review has ended.
		want     error
	}{
		"going on":            {patience: time.Hour},
		"out of time":         {patience: -time.Second, want: context.DeadlineExceeded},
		"without its client":  {patience: time.Hour, gone: true, want: context.Canceled},
		"ended":               {patience: time.Hour, end: true, want: context.Canceled},
		"ended, without time": {patience: -time.Second, end: true, want: context.DeadlineExceeded},
	} {
		for _, waits := range []bool{false, true} {
			of, leave := context.WithCancel(t.Context())
			defer leave()
			ctx := newReviewContext(of, c.patience, "granular", nil)
			defer ctx.end()
			if c.gone {
				leave()
			}
			if waits {
				ctx.Done()
			}
			if c.end {
				ctx.end()
			}
			if err := ctx.Err(); (err == nil) != (c.want == nil) || !c.end && !errors.Is(err, c.want) {
				t.Errorf("%s, waits %t: %v", name, waits, err)
			}
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			if c.want == nil {
				select {
				case <-ctx.Done():
					t.Errorf("%s: is done", name)
				case <-child.Done():
					t.Errorf("%s: a child is done", name)
				default:
				}
				continue
			}
			<-ctx.Done()
			<-child.Done()
			if err := ctx.Err(); err == nil {
				t.Errorf("%s: done without an error", name)
			}
		}
	}
}

func TestP4_TheTimeOfAReviewIsThatOfItsCaller(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want, _ := soon.Deadline()
	ctx := newReviewContext(soon, time.Hour, "granular", nil)
	defer ctx.end()
	if got, ok := ctx.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("the deadline of the request does not count: %s, %t", got, ok)
	}
	ctx = newReviewContext(t.Context(), time.Millisecond, "granular", nil)
	defer ctx.end()
	child, stop := context.WithCancel(ctx)
	defer stop()
	<-child.Done() // The timer ends it.
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
		t.Errorf("%v, %v", ctx.Err(), child.Err())
	}
}

// TestLog_LinesAreThoseOfALoggerWithValues: also their file and line.
func TestLog_LinesAreThoseOfALoggerWithValues(t *testing.T) {
	var out bytes.Buffer
	base := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out), textlogger.Verbosity(4)))
	req := scaling()
	of := klog.NewContext(t.Context(), base.WithValues("of", "the process"))
	ctx := newReviewContext(of, time.Hour, "granular", req)
	defer ctx.end()
	plain := klog.FromContext(of).WithValues(append([]any{"endpoint", "granular"}, about(req)...)...)
	lines := func(write func(klog.Logger)) (got [2]string) {
		for i, log := range []klog.Logger{plain, klog.FromContext(ctx)} {
			out.Reset()
			write(log)
			got[i] = regexp.MustCompile(`^.{21,22}\s+\d+ `).ReplaceAllString(out.String(), "")
		}
		return got
	}
	for name, write := range map[string]func(klog.Logger){
		"info":       func(l klog.Logger) { l.Info("a", "k", 1) },
		"verbose":    func(l klog.Logger) { l.V(4).Info("a") },
		"error":      func(l klog.Logger) { l.Error(errors.New("boom"), "a", "k", 1) },
		"values":     func(l klog.Logger) { l.WithValues("x", "y").Info("a") },
		"name":       func(l klog.Logger) { l.WithName("n").Info("a") },
		"call depth": func(l klog.Logger) { l.WithCallDepth(0).Info("a") },
	} {
		if got := lines(write); got[0] != got[1] || !strings.Contains(got[0], "context_test.go:") || !strings.Contains(got[0], `endpoint="granular"`) || !strings.Contains(got[0], `uid="u-1"`) {
			t.Errorf("%s: got\n%swant\n%s", name, got[1], got[0])
		}
	}
	if got := lines(func(l klog.Logger) { l.V(5).Info("a") }); got[0] != "" || got[1] != "" {
		t.Errorf("got %q", got)
	}
	silent := newReviewContext(klog.NewContext(t.Context(), klog.Logger{}), time.Hour, "granular", req)
	defer silent.end()
	klog.FromContext(silent).V(4).Info("no sink")
}

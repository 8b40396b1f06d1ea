package refresh

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func timing() Timing {
	return Timing{Interval: 30 * time.Second, Settle: time.Second, FirstRetry: 2 * time.Second, LastRetry: 5 * time.Second}
}

// record runs a loop for a time and returns the times of its runs, from the start.
func record(t *testing.T, whole time.Duration, work func(run int) error, meanwhile func(*Loop)) (runs []time.Duration, failures int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), whole)
		defer cancel()
		started, l := time.Now(), New(timing())
		go meanwhile(l)
		l.Run(ctx, func(context.Context) error {
			runs = append(runs, time.Since(started))
			return work(len(runs))
		}, func(error) { failures++ })
	})
	return runs, failures
}

func same(t *testing.T, got []time.Duration, seconds ...int) {
	t.Helper()
	ok := len(got) == len(seconds)
	for i := 0; ok && i < len(got); i++ {
		ok = got[i] == time.Duration(seconds[i])*time.Second
	}
	if !ok {
		t.Errorf("worked at %v, want %v s", got, seconds)
	}
}

func TestLoop_AtOnceAndAtTheInterval(t *testing.T) {
	runs, failures := record(t, 61*time.Second, func(int) error { return nil }, func(*Loop) {})
	same(t, runs, 0, 30, 60)
	if failures != 0 {
		t.Errorf("%d failures", failures)
	}
}

func TestLoop_ChangesThatGatherAreOneRun(t *testing.T) {
	runs, _ := record(t, 30*time.Second, func(int) error { return nil }, func(l *Loop) {
		time.Sleep(10 * time.Second)
		for range 10 {
			l.Changed()
		}
	})
	same(t, runs, 0, 11)
}

func TestLoop_ChangeDuringTheWorkIsNotLost(t *testing.T) {
	runs, _ := record(t, 20*time.Second, func(run int) error {
		if run == 1 {
			time.Sleep(2 * time.Second)
		}
		return nil
	}, func(l *Loop) {
		time.Sleep(time.Second)
		l.Changed()
	})
	same(t, runs, 0, 3)
}

func TestLoop_FailureIsRepeatedSoonThenLessOften(t *testing.T) {
	runs, failures := record(t, 50*time.Second, func(run int) error {
		if run <= 4 || run == 6 {
			return errors.New("down")
		}
		return nil
	}, func(*Loop) {})
	// The delays are 2, 4, 5 and 5 seconds, then the interval, then the first retry again.
	same(t, runs, 0, 2, 6, 11, 16, 46, 48)
	if failures != 5 {
		t.Errorf("%d failures", failures)
	}
}

func TestLoop_ErrorAtShutdownIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		New(timing()).Run(ctx, func(ctx context.Context) error { cancel(); return ctx.Err() }, func(err error) { t.Error(err) })
	})
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fieldperm/fieldperm/test/stack"
)

func main() {
	keep := flag.Bool("keep", keepAsked(), "leave the control plane running till Ctrl-C; also by KEEP=1 in the environment")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends the program at once; the watchdogs clean up then.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, *keep, newPrinter(os.Stdout)))
}

// run returns the exit code: 0 if all results were as expected, 1 if not, 130 if it was interrupted before.
func run(ctx context.Context, keep bool, out *printer) int {
	begin := time.Now()
	seen, err := play(ctx, keep, out)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "demo: interrupted: %v\n", err)
		return 130
	case err != nil:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return 1
	}
	out.sum(seen, time.Since(begin))
	if !seen.good() {
		return 1
	}
	return 0
}

// tally counts steps.
type tally struct{ total, expected int }

func (t tally) good() bool { return t.total > 0 && t.total == t.expected }

// play is the whole demo: build, start, set up, the stories one after the other, and the end of all processes that it started.
func play(ctx context.Context, keep bool, out *printer) (seen tally, err error) {
	all, err := stories()
	if err != nil {
		return seen, err
	}
	root, err := checkout(ctx)
	if err != nil {
		return seen, err
	}
	if err := build(ctx, root, out); err != nil {
		return seen, err
	}
	frozen, err := startFreeze()
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, frozen.stop()) }()
	s, err := stack.Start(ctx, stack.Config{
		Bin:     filepath.Join(root, "bin"),
		Prepare: frozen.write,
		Audit:   true,
		Log:     out,
	})
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()

	st, err := setUp(ctx, root, s, all, out)
	if err == nil {
		seen, err = st.playAll(ctx, all, out)
	}
	if ctx.Err() == nil && (err != nil || !seen.good()) {
		out.log("kube-apiserver", s.APIServerLogTail())
		out.log("fieldperm-webhook", s.WebhookLogTail())
	}
	if err != nil {
		return seen, err
	}
	out.line("")
	if keep {
		out.invite(st, all)
		<-ctx.Done()
		out.line("")
	}
	return seen, nil
}

// playAll plays the stories. The error is an error of the demo, not a wrong result of a story.
func (st *stage) playAll(ctx context.Context, all []*Story, out *printer) (tally, error) {
	var seen tally
	out.header()
	for _, story := range all {
		out.story(story)
		for i := range story.Steps {
			step := &story.Steps[i]
			if step.Fieldperm != "" {
				if err := st.act(ctx, step.Fieldperm); err != nil {
					return seen, err
				}
				out.action(step.Fieldperm)
				continue
			}
			came, err := st.play(ctx, story, step)
			if err != nil {
				return seen, fmt.Errorf("%s: %s: %w", story.Name, step.Run, err)
			}
			seen.total++
			if came.asExpected() {
				seen.expected++
			}
			out.step(seen.total, step, came)
		}
	}
	return seen, nil
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

func main() {
	all := flag.Bool("all", false, "run what make test does not run")
	list := flag.Bool("list", false, "print the commands, and run nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	passed, err := run(ctx, *all, *list)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "test: %v\n", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

// eventsFile has the events of the last run, each test with its seconds. See go doc test2json.
const eventsFile = "bin/test-events.json"

// run reports whether every test passed. The error says why some did not run.
func run(ctx context.Context, all, list bool) (bool, error) {
	if err := os.MkdirAll("bin", 0o755); err != nil { //nolint:gosec // As make makes it.
		return false, err
	}
	packages, err := readPackages(ctx)
	if err != nil {
		return false, err
	}
	rows, err := readLater()
	if err != nil {
		return false, err
	}
	name, first := "make test", step{targets: []string{"build"}}
	if all {
		name, first.targets = "make test-all", append(first.targets, "controlplane")
	}
	past, err := readTimes(timesFile, name)
	if err != nil {
		return false, err
	}
	lanes := quick(packages, rows, past)
	if all {
		race := hasRaceDetector(ctx)
		if !race {
			fmt.Println("make test-all: the race detector is off, because it needs a C compiler: install gcc or clang, with the C library's headers")
		}
		lanes = rest(packages, rows, past, race)
	}
	if list {
		for _, l := range lanes {
			for _, s := range l {
				fmt.Println(s)
			}
		}
		return true, nil
	}

	events, err := os.Create(eventsFile)
	if err != nil {
		return false, err
	}
	defer events.Close() //nolint:errcheck // It is only a help.
	p := newProgress(os.Stdout, events, name, past)
	p.announce(first, lanes)
	if err := first.build(ctx); err != nil {
		return false, fmt.Errorf("%s: %w", first, err)
	}
	stop := p.tick(ctx)
	defer stop()
	var wait sync.WaitGroup
	errs := make([]error, len(lanes))
	for i, l := range lanes {
		wait.Go(func() { errs[i] = l.run(ctx, p) })
	}
	wait.Wait()
	return p.finish(errs)
}

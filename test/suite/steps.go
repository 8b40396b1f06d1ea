package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// step is a go test command, or with targets a make command.
type step struct {
	targets []string
	// dir is the directory of the module: "" for the one of fieldperm.
	dir string
	env []string
	// args follow "go test -json".
	args     []string
	packages []string
	// low gives the command a lower priority.
	low bool
}

// lane is a list of steps, one after the other.
type lane []step

var (
	// fast leaves out go vet, which make lint runs on all of it, and what only a debugger reads, which takes a third of the time of a link.
	fast = []string{"-vet=off", "-ldflags=-w", "-timeout=30m"}
	// Packages with a control plane wait for it most of the time: three at a time keep two processors busy.
	withCluster = []string{"-tags", tag, "-count=1", "-p=3"}
)

// oldest is the oldest minor of Kubernetes that is supported.
const oldest = "1.32"

// flags joins the flags that all commands have with others.
func flags(more ...string) []string { return append(slices.Clone(fast), more...) }

// quick returns what make test runs.
func quick(packages []pkg, rows []later, past times) []lane {
	var clusters, others []string
	for _, p := range packages {
		if p.cluster {
			clusters = append(clusters, p.path)
		} else {
			others = append(others, p.path)
		}
	}
	skip := "-skip=" + names(laterTests(rows, nil))
	return []lane{
		{
			// The others need no control plane. Their tests have what its linkers, which use one processor, leave of the machine.
			{targets: []string{"controlplane"}},
			{args: flags(append(slices.Clone(withCluster), "-short", skip)...), packages: past.longestFirst(clusters)},
			{dir: "examples/operator", args: flags("-count=1"), packages: []string{"./website/..."}},
		},
		{
			{low: true, args: flags("-short", skip), packages: past.longestFirst(others)},
			{low: true, dir: "generators/analyzer", args: flags(), packages: []string{"./..."}},
		},
	}
}

// rest returns what make test-all runs in addition.
func rest(packages []pkg, rows []later, past times, hasDetector bool) []lane {
	var clusters, drawn, raced []string
	var tests []string
	for _, p := range packages {
		if p.concurrent && p.unit {
			raced = append(raced, p.path)
		}
		moved := laterTests(rows, &p)
		tests = append(tests, moved...)
		switch {
		case p.cluster && len(moved)+len(p.short) > 0:
			clusters = append(clusters, p.path)
		case len(moved)+len(p.short) > 0:
			drawn = append(drawn, p.path)
		}
		tests = append(tests, p.short...)
	}
	run := "-run=" + names(tests)
	race := step{low: true, env: []string{"CGO_ENABLED=1"}, args: flags("-race", "-short", "-skip="+names(laterTests(rows, nil))), packages: past.longestFirst(raced)}
	if !hasDetector {
		race.packages = nil
	}
	return []lane{
		{
			{args: flags(append(slices.Clone(withCluster), run)...), packages: past.longestFirst(clusters)},
		},
		{
			race,
			{low: true, args: flags(run), packages: past.longestFirst(drawn)},
			// All other tests run on the newest minor.
			{targets: []string{"test-versions", "K8S=" + oldest}},
			{low: true, dir: "test/observability", args: flags(), packages: []string{"./..."}},
			{low: true, dir: "test/peers", args: flags(), packages: []string{"./..."}},
			// Without $CHROMIUM it is skipped.
			{low: true, dir: "test/browser", args: flags(), packages: []string{"./..."}},
		},
	}
}

// laterTests returns the tests of the rows, or of those of one package.
func laterTests(rows []later, of *pkg) []string {
	var tests []string
	for _, row := range rows {
		if of == nil || "./"+row.Package == of.path {
			tests = append(tests, row.Tests...)
		}
	}
	return tests
}

// hasRaceDetector reports whether there is a C compiler. It builds something, because a compiler without the C library's headers is none.
func hasRaceDetector(ctx context.Context) bool {
	cmd := exec.CommandContext(ctx, "go", "build", "-race", "runtime/cgo")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	return cmd.Run() == nil
}

// binaries returns the directory of fieldperm's commands. The working directory is the root of the checkout, where make runs.
func binaries() string {
	path, err := filepath.Abs("bin")
	if err != nil {
		return "bin"
	}
	return path
}

// String returns the command as a shell takes it.
func (s step) String() string {
	words := append(slices.Clone(s.env), s.words()...)
	for i, word := range words {
		if strings.ContainsAny(word, "|()$^*") {
			words[i] = "'" + word + "'"
		}
	}
	return strings.Join(words, " ")
}

// words returns the command; more follow "go test".
func (s step) words(more ...string) []string {
	if len(s.targets) > 0 {
		return append([]string{"make", "--no-print-directory"}, s.targets...)
	}
	words := []string{"go"}
	if s.dir != "" {
		words = append(words, "-C", s.dir)
	}
	return slices.Concat(words, []string{"test"}, more, s.args, s.packages)
}

// run runs the steps of a lane. A step whose tests fail does not keep the next one from running.
func (l lane) run(ctx context.Context, p *progress) error {
	for _, s := range l {
		var err error
		switch {
		case len(s.targets) > 0:
			err = s.build(ctx)
		case len(s.packages) > 0:
			err = s.run(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// build makes what tests need: the commands, the control plane.
func (s step) build(ctx context.Context) error {
	words := s.words()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // Our own targets.
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func (s step) run(ctx context.Context, p *progress) error {
	words := s.words("-json")
	if s.low {
		words = append([]string{"nice", "-n", "5"}, words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // Our own command.
	cmd.Env = append(append(os.Environ(), "FIELDPERM_BIN="+binaries()), s.env...)
	// Ctrl-C reaches the tests by the terminal, so that they can clean up. This program waits for them.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := false
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			failed = p.read(&s, line) || failed
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	// go test ends with 1 if a test failed, which progress knows then.
	if err := cmd.Wait(); err != nil && (ctx.Err() != nil || !failed) {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

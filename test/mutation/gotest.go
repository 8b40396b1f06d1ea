package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// usualTimeout limits the tests of one package under one mutation, baselineTimeout without any.
const (
	usualTimeout    = 30 * time.Second
	baselineTimeout = 5 * time.Minute
)

// baseline runs the tests of the unchanged tree: a mutation proves nothing if they fail anyway.
func baseline(ctx context.Context, root string, mutations []Mutation, corpus bool, parallel int) error {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(max(parallel, 1))
	passes := func(pkg, tests string) {
		workers.Go(func() error {
			o, err := goTest(ctx, root, pkg, "", baselineTimeout, only(tests)...)
			if err == nil && o.failed {
				err = fmt.Errorf("%s fails without any mutation: make it pass first\n%s", pkg, o.output)
			}
			return err
		})
	}
	for _, p := range packagesOf(mutations) {
		passes(p, testsOf(mutations, p))
	}
	if corpus {
		passes(corpusPackage, corpusTest)
	}
	return workers.Wait()
}

// only are the arguments of go test for the tests that match; all for "".
func only(tests string) []string {
	if tests == "" {
		return nil
	}
	return []string{"-run=" + tests}
}

// try runs the tests of a mutation's packages until one fails, and then the corpus if the mutation or the caller requires it. dir is for
// files of its own.
func try(ctx context.Context, root, dir string, m *Mutation, withCorpus bool) (Result, error) {
	result := Result{Mutation: m}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return result, err
	}
	overlay, err := m.mutated.Overlay(root, dir)
	if err != nil {
		return result, err
	}
	for _, p := range m.Packages {
		o, err := goTest(ctx, root, p, overlay, m.timeout, only(m.Tests)...)
		if err != nil {
			return result, fmt.Errorf("mutation %q: %w", m.Name, err)
		}
		if result.Problem = o.problem(m.Timeout != ""); result.Problem != "" {
			result.Output = o.output
			return result, nil
		}
		if o.failed {
			result.Package, result.Test, result.More = p, teller(o.tests, m.Rule), len(o.tests)-1
			break
		}
	}
	if m.Corpus || withCorpus {
		o, err := goTest(ctx, root, corpusPackage, overlay, m.timeout, only(corpusTest)...)
		if err != nil {
			return result, fmt.Errorf("mutation %q: %w", m.Name, err)
		}
		if o.failed && len(o.tests) > 0 {
			_, result.Scenario, _ = strings.Cut(teller(o.tests, strings.ToLower(m.Rule)), "/")
		}
	}
	return result, nil
}

// The executor of the corpus that runs in process.
const (
	corpusPackage = "./test/corpus"
	corpusTest    = "^TestCore_Scenarios$"
)

// outcome is the result of one package's tests.
type outcome struct {
	failed   bool
	compiles bool
	// tests are the failed tests, sorted, without tests that failed only because of a subtest; if there is none, the test that was running
	// when the package failed.
	tests    []string
	timedOut bool
	output   string
}

// problem is the reason why a mutant says nothing about the tests, "" if there is none.
func (o *outcome) problem(mayHang bool) string {
	switch {
	case !o.compiles:
		return "does not compile: correct to"
	case o.failed && len(o.tests) == 0:
		return "makes the package fail before any test: choose a mutation that runs"
	case o.timedOut && !mayHang && len(o.tests) == 1:
		return "makes " + o.tests[0] + " wait for ever: give it a timeout of its own if it is to be noticed so"
	}
	return ""
}

// teller returns the most significant test for a rule: the first with the rule in its name, otherwise the first.
func teller(tests []string, rule string) string {
	names := regexp.MustCompile(`(^|[^0-9A-Za-z]|Test)` + regexp.QuoteMeta(rule) + `([^0-9A-Za-z]|$)`)
	for _, name := range tests {
		if names.MatchString(name) {
			return name
		}
	}
	return tests[0]
}

// goTest runs one package's tests; overlay may be "". An error means that they could not be run at all.
func goTest(ctx context.Context, root, pkg, overlay string, timeout time.Duration, more ...string) (outcome, error) {
	args := []string{"test", "-json", "-count=1", "-short", "-vet=off", "-ldflags=-s -w -linkmode=internal", "-p=1", "-timeout=" + timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, more...), pkg)...)
	cmd.Dir = root
	// The go command passes an interrupt on to the tests; a kill would leave them behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	if err := ctx.Err(); err != nil {
		return outcome{}, err
	}
	o, err := readEvents(&stdout)
	if err != nil {
		return outcome{}, fmt.Errorf("go test %s: %w", pkg, err)
	}
	o.output += stderr.String()
	if o.failed != (runErr != nil) {
		return outcome{}, fmt.Errorf("go test %s: ends otherwise than its events tell: %w", pkg, errors.Join(runErr, errors.New(o.output)))
	}
	return o, nil
}

// event is one of go doc test2json and go help buildjson.
type event struct {
	Action, Test, Output string
}

func readEvents(r io.Reader) (outcome, error) {
	o := outcome{compiles: true}
	var output strings.Builder
	var running []string
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return outcome{}, err
		}
		output.WriteString(e.Output)
		switch e.Action {
		case "build-fail":
			o.compiles = false
		case "run":
			running = append(running, e.Test)
		case "pass", "skip":
			running = slices.DeleteFunc(running, func(name string) bool { return name == e.Test })
		case "fail":
			o.failed = true
			running = slices.DeleteFunc(running, func(name string) bool { return name == e.Test })
			if e.Test != "" {
				o.tests = append(o.tests, e.Test)
			}
		}
	}
	slices.Sort(o.tests)
	o.tests = slices.DeleteFunc(o.tests, func(name string) bool {
		return slices.ContainsFunc(o.tests, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	if o.failed && len(o.tests) == 0 && len(running) > 0 {
		o.tests = running[len(running)-1:]
	}
	o.output = output.String()
	o.timedOut = strings.Contains(o.output, "panic: test timed out after ")
	return o, nil
}

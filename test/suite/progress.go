package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// heartbeat is the time between two lines that say what is running.
const heartbeat = 30 * time.Second

// event is a line of go test -json. See go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
	FailedBuild                               string
}

// key is a test in a command, a package if it has no test. make test-all runs some packages in two commands at the same time.
type key struct {
	command   *step
	pkg, test string
}

// progress follows go test commands that run at the same time, and prints what a person wants to know.
type progress struct {
	name string
	past times
	out  io.Writer
	// events takes each line of go test -json.
	events io.Writer

	mu      sync.Mutex // guards all below
	begin   time.Time
	all     int // packages that are expected
	now     times
	running map[key]time.Time // packages
	// output has the lines of tests and packages that have not ended, and those of builds.
	output map[key][]string
	// hasFailed are packages of which a test has failed.
	hasFailed map[key]bool
	failed    []string
	passed, skipped,
	done int
}

func newProgress(out, events io.Writer, name string, past times) *progress {
	return &progress{name: name, past: past, out: out, events: events, begin: time.Now(), now: times{When: time.Now(), Packages: map[string]float64{}}, running: map[key]time.Time{}, output: map[key][]string{}, hasFailed: map[key]bool{}}
}

// announce says what will run.
func (p *progress) announce(first step, lanes []lane) {
	took := "how long it takes on this machine is not known yet; on 2 cores it is about a quarter of an hour"
	if p.name != "make test" {
		took = "how long it takes on this machine is not known yet; on 2 cores it is about half an hour"
	}
	if !p.past.When.IsZero() {
		took = fmt.Sprintf("on %s it took %s here", p.past.When.Format("2006-01-02"), seconds(p.past.Seconds))
	}
	fmt.Fprintf(p.out, "%s: %s. It runs %s, and then these commands, in %d lanes side by side:\n", p.name, took, first, len(lanes))
	for i, l := range lanes {
		for _, s := range l {
			p.all += len(s.packages)
			if len(s.targets) > 0 {
				fmt.Fprintf(p.out, "  %d. %s\n", i+1, s)
			} else if len(s.packages) > 0 {
				short := s
				short.packages = []string{fmt.Sprintf("(%d packages)", len(s.packages))}
				if len(s.packages) < 3 {
					short.packages = s.packages
				}
				fmt.Fprintf(p.out, "  %d. %s\n", i+1, shorten(short.String()))
			}
		}
	}
}

// shorten keeps a line that names many tests readable.
func shorten(line string) string {
	before, rest, found := strings.Cut(line, "=^(")
	pattern, after, ended := strings.Cut(rest, ")$'")
	if !found || !ended || len(pattern) < 80 {
		return line
	}
	return fmt.Sprintf("%s=^(%d tests)$'%s", before, strings.Count(pattern, "|")+1, after)
}

// tick prints what runs until the returned function is called.
func (p *progress) tick(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				p.say()
			}
		}
	}()
	return stop
}

func (p *progress) say() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now []string
	for _, k := range slices.SortedFunc(maps.Keys(p.running), func(a, b key) int { return p.running[a].Compare(p.running[b]) }) {
		now = append(now, fmt.Sprintf("%s (%s)", short(k.pkg), seconds(time.Since(p.running[k]).Seconds())))
	}
	if len(now) == 0 {
		now = []string{"the compiler"}
	}
	failures := ""
	if len(p.failed) > 0 {
		failures = fmt.Sprintf(", %d FAILED", len(p.failed))
	}
	fmt.Fprintf(p.out, "%s: after %s: %d packages done of about %d%s; running: %s\n", p.name, seconds(time.Since(p.begin).Seconds()), p.done, p.all, failures, strings.Join(now, ", "))
}

// read takes a line that a command printed, and reports whether it is a failure.
func (p *progress) read(s *step, line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.events.Write(line) // It is only a help.
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(p.out, "%s", line)
		return false
	}
	k := key{s, e.Package, e.Test}
	switch e.Action {
	case "start":
		p.running[k] = time.Now()
	case "build-output":
		k.pkg = e.ImportPath
		p.output[k] = append(p.output[k], e.Output)
	case "output":
		p.output[k] = append(p.output[k], e.Output)
	case "pass", "skip", "fail":
		p.end(k, e)
	}
	return e.Action == "fail"
}

// end takes the result of a test or, without the name of one, of a package.
func (p *progress) end(k key, e event) {
	lines := p.output[k]
	delete(p.output, k)
	isPackage, whole := e.Test == "", key{k.command, k.pkg, ""}
	if isPackage {
		delete(p.running, k)
		p.done++
		p.all = max(p.all, p.done) // A pattern stands for several packages.
		p.now.Packages["./"+strings.TrimPrefix(short(e.Package), "./")] += e.Elapsed
	}
	switch {
	case e.Action == "fail":
		// What a package prints is not of interest if one of its tests failed. A build that fails has printed why before.
		if isPackage && p.hasFailed[whole] {
			return
		}
		p.hasFailed[whole] = true
		lines = append(p.output[key{k.command, e.FailedBuild, ""}], lines...)
		p.failed = append(p.failed, strings.TrimSpace("FAIL "+e.Package+" "+e.Test)+"\n     again: "+k.command.again(e)+ending(lines))
		fmt.Fprint(p.out, strings.Join(lines, ""))
	case isPackage && e.Action == "pass":
		fmt.Fprintf(p.out, "ok   %-40s %8s  (%d of about %d)\n", short(e.Package), seconds(e.Elapsed), p.done, p.all)
	case isPackage:
		// It has no test here.
	case e.Action == "pass":
		p.passed++
	default:
		p.skipped++
		fmt.Fprint(p.out, "SKIP "+short(e.Package)+" "+strings.Join(lines, ""))
	}
}

// ending returns the last lines of the output of a failed test, as an appendix of its name: a record of a long run often keeps only the end.
func ending(lines []string) string {
	const most, width = 5, 500
	lines = slices.DeleteFunc(strings.Split(strings.Join(lines, ""), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ")
	})
	var out strings.Builder
	for _, line := range lines[max(0, len(lines)-most):] {
		fmt.Fprintf(&out, "\n     %.*s", width, line)
	}
	return out.String()
}

// again returns the command that runs a failed test.
func (s *step) again(e event) string {
	one := step{dir: s.dir, env: s.env, packages: []string{e.Package}}
	for _, arg := range s.args {
		if !strings.HasPrefix(arg, "-run=") && !strings.HasPrefix(arg, "-skip=") {
			one.args = append(one.args, arg)
		}
	}
	if e.Test != "" {
		top, _, _ := strings.Cut(e.Test, "/")
		one.args = append(one.args, "-run=^"+top+"$")
	}
	return one.String()
}

// finish prints the result, failures last, and notes the times of a run that passed.
func (p *progress) finish(errs []error) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := time.Since(p.begin)
	err := errors.Join(errs...)
	if len(p.failed) == 0 && err == nil {
		p.now.Seconds = took.Seconds()
		if err := p.now.write(timesFile, p.name); err != nil {
			return false, err
		}
	}
	fmt.Fprintf(p.out, "%s: %s\n", p.name, seconds(took.Seconds()))
	for _, failure := range p.failed {
		fmt.Fprintln(p.out, failure)
	}
	fmt.Fprintf(p.out, "%d passed, %d failed, %d skipped\n", p.passed, len(p.failed), p.skipped)
	return len(p.failed) == 0, err
}

// short returns the path of a package below the module.
func short(path string) string {
	return strings.TrimPrefix(path, "github.com/fieldperm/fieldperm/")
}

// seconds prints a duration as 3.2s or 4m05s.
func seconds(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.1fs", s)
	}
	return fmt.Sprintf("%dm%02ds", int(s)/60, int(s)%60)
}

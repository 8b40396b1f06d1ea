//go:build model

package model

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// limit ends a search that has become too large.
const limit = 10 * time.Minute

// variant is one model: a file and what is defined.
type variant struct {
	name, file string
	defines    []string
}

// The protocol as it is: no write lands unseen, and where somebody tampers none after the window.
func TestA5_Model_NoWriteLandsUnseen(t *testing.T) {
	for _, v := range []variant{
		{"REST, two servers", "rest.pml", nil},
		{"REST, two replicas", "rest.pml", []string{"SERVERS=1", "REPLICAS=2", "VERSIONS=3", "BEGUN", "ANSWER=0", "TTL=0"}},
		{"REST, no guard", "rest.pml", []string{"TAMPER", "VERSIONS=4"}},
		{"static, own server", "static.pml", []string{"SERVERS=1"}},
		{"static, two servers", "static.pml", []string{"FAIL=2"}},
		{"static, manifest narrowed", "static.pml", []string{"SERVERS=1", "TAMPER", "FAIL=1"}},
		{"static, failurePolicy ignored", "static.pml", []string{"SERVERS=1", "TAMPER", "IGNORED"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			if found, output := v.search(t); found {
				t.Errorf("spin found an over-grant: run spin -t -p -g on the trail, see README.md\n%s", output)
			}
		})
	}
}

// The protocol without one of its rules, or without an assumption: each time there is an over-grant. If spin finds
// none, the models would not have found it in the code either.
func TestA5_Model_EveryRuleIsNeeded(t *testing.T) {
	for _, v := range []variant{
		{"deleted without finalizer", "rest.pml", []string{"NO_FINALIZER"}},
		{"released one tick early", "rest.pml", []string{"SHORT=1"}},
		{"release does not wait for requests", "rest.pml", []string{"SHORT=REQUEST+1"}},
		{"release does not wait for caches", "rest.pml", []string{"SHORT=TTL+1"}},
		{"release does not wait for proofs", "rest.pml", []string{"SHORT=PROOF+1"}},
		{"released at once", "rest.pml", []string{"SHORT=UNDERWAY+1"}},
		{"nothing settles", "rest.pml", []string{"NO_SETTLE"}},
		{"proof never expires", "rest.pml", []string{"NO_EXPIRY"}},
		{"proof counts from the end of the round", "rest.pml", []string{"FROM_THE_END"}},
		{"configuration is not read", "rest.pml", []string{"NO_GET"}},
		{"no canary", "rest.pml", []string{"NO_CANARY"}},
		{"canary to one server", "rest.pml", []string{"ONE_SERVER"}},
		{"closed at start", "rest.pml", []string{"CLOSED_AT_START"}},
		{"overtaken round counts", "rest.pml", []string{"NO_EPOCH"}},
		{"server serves before it is known", "rest.pml", []string{"LATE_LISTING"}},
		{"window is as long as it is said, REST", "rest.pml", []string{"TAMPER", "SERVERS=1", "VERSIONS=4", "TIGHT=1"}},
		{"no proof of single resources", "static.pml", []string{"FAIL=2", "NO_RESOURCE_PROOF"}},
		{"webhook's error is never tried", "static.pml", []string{"FAIL=2", "DENY_ONLY"}},
		{"try that failed counts as tried", "static.pml", []string{"FAIL=2", "FAILED_KEPT"}},
		{"canary to one server, static", "static.pml", []string{"FAIL=2", "ONE_SERVER"}},
		{"closed at start, static", "static.pml", []string{"FAIL=2", "CLOSED_AT_START"}},
		{"proof never expires, static", "static.pml", []string{"SERVERS=1", "TAMPER", "NO_EXPIRY"}},
		{"window is as long as it is said, narrowed", "static.pml", []string{"SERVERS=1", "TAMPER", "FAIL=1", "TIGHT=1"}},
		{"window is as long as it is said, ignored", "static.pml", []string{"SERVERS=1", "TAMPER", "IGNORED", "TIGHT=1"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			if found, output := v.search(t); !found {
				t.Errorf("spin found no over-grant: the model does not see what this rule is for\n%s", output)
			}
		})
	}
}

// search reports whether there is an over-grant. A search that is not complete fails the test.
func (v variant) search(t *testing.T) (found bool, output string) {
	t.Helper()
	dir := t.TempDir()
	models, err := filepath.Glob("*.pml")
	if err != nil || len(models) == 0 {
		t.Fatalf("models: none found: %v", err)
	}
	for _, model := range models {
		raw, err := os.ReadFile(model)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, model), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{}
	for _, define := range v.defines {
		args = append(args, "-D"+define)
	}
	run(t, dir, "spin", append(args, "-a", v.file)...)
	run(t, dir, "gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2000", "-o", "pan", "pan.c")
	output = run(t, dir, filepath.Join(dir, "pan"), "-n", "-m500000")

	errors := regexp.MustCompile(`errors: (\d+)`).FindStringSubmatch(output)
	found = strings.Contains(output, "assertion violated")
	switch {
	case errors == nil, found != (errors[1] != "0"):
		t.Fatalf("%s: has another fault than an over-grant:\n%s", v.file, output)
	case !found && (strings.Contains(output, "search depth too small") || strings.Contains(output, "Search not completed")):
		t.Fatalf("%s: the search is not complete: make the model smaller:\n%s", v.file, output)
	}
	if states := regexp.MustCompile(`(\d+) states, stored`).FindStringSubmatch(output); states != nil {
		t.Logf("%s states, over-grant found: %v", states[1], found)
	}
	return found, output
}

// run returns what a program printed. What is missing fails the test and is never skipped.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s: is not installed: run apt-get install -y spin gcc libc6-dev (%v)", program, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = dir
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out.String()))
	}
	return out.String()
}

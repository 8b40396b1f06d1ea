package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// listed reads the packages once: go list takes a while.
var listed = sync.OnceValues(func() ([]pkg, error) { return readPackages(context.Background()) })

// read returns the packages and the table as the program does, which runs in the root of the checkout.
func read(t *testing.T) ([]pkg, []later) {
	t.Helper()
	t.Chdir("../..")
	packages, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readLater()
	if err != nil {
		t.Fatal(err)
	}
	return packages, rows
}

// TestSuite_EveryTestRuns: a package with tests is in a command of make test, and a test that make test leaves out is in one of make test-all.
func TestSuite_EveryTestRuns(t *testing.T) {
	packages, rows := read(t)
	first, second := quick(packages, rows, times{}), rest(packages, rows, times{}, true)
	if len(packages) < 50 {
		t.Fatalf("%d packages have tests: this test checks nothing", len(packages))
	}
	for _, p := range packages {
		if len(commandsWith(first, p.path, "-skip=")) != 1 {
			t.Errorf("%s is not in one command of make test", p.path)
		}
		moved := laterTests(rows, &p)
		for _, test := range slices.Concat(moved, p.short) {
			commands := commandsWith(second, p.path, "-run=")
			if len(commands) != 1 || !strings.Contains(commands[0], test) {
				t.Errorf("%s %s is not in one command of make test-all", p.path, test)
			}
		}
		// One pattern of -skip holds for all packages.
		for _, test := range p.tests {
			if slices.Contains(laterTests(rows, nil), test) && !slices.Contains(moved, test) {
				t.Errorf("%s %s is left out, because a test of another package has its name: rename one", p.path, test)
			}
		}
	}
}

// TestSuite_TheTableNamesTests: each row names a package, tests of it, and a reason.
func TestSuite_TheTableNamesTests(t *testing.T) {
	packages, rows := read(t)
	for _, row := range rows {
		i := slices.IndexFunc(packages, func(p pkg) bool { return p.path == "./"+row.Package })
		if i < 0 {
			t.Errorf("%s: is no package with tests", row.Package)
			continue
		}
		if row.Reason == "" || len(row.Tests) == 0 {
			t.Errorf("%s: has no reason or no test", row.Package)
		}
		for _, test := range row.Tests {
			if !slices.Contains(packages[i].tests, test) {
				t.Errorf("%s has no test %q", row.Package, test)
			}
		}
	}
}

// TestSuite_TheRaceDetectorCoversGoroutines: these packages start goroutines in different ways, and these do not.
func TestSuite_TheRaceDetectorCoversGoroutines(t *testing.T) {
	packages, _ := read(t)
	for path, want := range map[string]bool{"./internal/authz": true, "./internal/server": true, "./admission": true, "./fieldperm": true, "./verbs": false, "./generators/markers": false} {
		i := slices.IndexFunc(packages, func(p pkg) bool { return p.path == path })
		if i < 0 || packages[i].concurrent != want {
			t.Errorf("%s: starts goroutines: want %t", path, want)
		}
	}
}

// TestSuite_ModulesOfTheirOwn: each module with tests of ours is in a command, or has a reason here.
func TestSuite_ModulesOfTheirOwn(t *testing.T) {
	packages, rows := read(t)
	without := map[string]string{
		"test/controlplane":              "has no tests: it names the programs to build",
		"test/controlplane/versions/1.*": "have no tests: they name the programs to build",
		"hack/tools":                     "has no tests: it names the programs to build",
	}
	out, err := os.ReadFile("hack/verify.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(out), "for module in . ")
	list, _, _ = strings.Cut(list, ";")
	for _, module := range strings.Fields(list) {
		found := without[module] != "" || strings.HasSuffix(module, "/tools")
		for _, l := range slices.Concat(quick(packages, rows, times{}), rest(packages, rows, times{}, true)) {
			found = found || slices.ContainsFunc(l, func(s step) bool { return s.dir == module })
		}
		if !found {
			t.Errorf("module %s is in no command", module)
		}
	}
}

// commandsWith returns the commands with a package that have a flag.
func commandsWith(lanes []lane, path, flag string) []string {
	var out []string
	for _, s := range slices.Concat(lanes...) {
		if slices.Contains(s.packages, path) && s.dir == "" && !slices.Contains(s.args, "-race") && strings.Contains(s.String(), flag) {
			out = append(out, s.String())
		}
	}
	return out
}

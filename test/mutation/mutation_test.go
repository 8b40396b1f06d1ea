package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/mutation/edit"
)

const root = "../.."

// TestList_AppliesToTheTree reports a rename here, before a run of all mutations.
func TestList_AppliesToTheTree(t *testing.T) {
	mutations, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range mutations {
		m := &mutations[i]
		for _, p := range m.Packages {
			if !strings.HasPrefix(p, "./") {
				t.Errorf("%q: package %q: begin it with ./", m.Name, p)
			}
		}
	}
}

func TestPrepare_Refuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("one two, two"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := edit.NewTree(dir)
	good := Mutation{Name: "n", Rule: "D1", Edit: edit.Edit{File: "a.yaml", From: "one", To: "1"}, Packages: []string{"./a"}, Why: "w"}
	if err := good.prepare(tree); err != nil || string(good.mutated["a.yaml"]) != "1 two, two" || good.timeout != usualTimeout {
		t.Errorf("%v: %q, %v", err, good.mutated, good.timeout)
	}
	for want, change := range map[string]func(*Mutation){
		"occurs 2 times": func(m *Mutation) { m.From = "two" },
		"no duration":    func(m *Mutation) { m.Timeout = "soon" },
		"lacks one of":   func(m *Mutation) { m.Packages = nil },
	} {
		m := good
		change(&m)
		if err := m.prepare(tree); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestTestsOf_AllUnlessEveryMutationNamesSome(t *testing.T) {
	named := []Mutation{{Packages: []string{"./a"}, Tests: "^TestX"}, {Packages: []string{"./a", "./b"}, Tests: "^TestY"}, {Packages: []string{"./a"}, Tests: "^TestX"}}
	mixed := append(slices.Clone(named), Mutation{Packages: []string{"./a"}})
	if got := testsOf(named, "./a"); got != "^TestX|^TestY" {
		t.Errorf("got %q", got)
	}
	if got := testsOf(mixed, "./a") + testsOf(mixed, "./c"); got != "" {
		t.Errorf("got %q", got)
	}
	if got := testsOf(mixed, "./b"); got != "^TestY" {
		t.Errorf("got %q", got)
	}
}

func TestReadEvents(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		failed bool
		tests  []string
		wrong  string
	}{
		"passes":       {`{"Action":"run","Test":"TestA"}{"Action":"pass","Test":"TestA"}{"Action":"pass"}`, false, nil, ""},
		"a subtest":    {`{"Action":"fail","Test":"TestB/x"}{"Action":"fail","Test":"TestB"}{"Action":"fail","Test":"TestA"}{"Action":"fail"}`, true, []string{"TestA", "TestB/x"}, ""},
		"hangs":        {`{"Action":"run","Test":"TestA"}{"Action":"output","Output":"panic: test timed out after 1m0s"}{"Action":"fail"}`, true, []string{"TestA"}, "TestA wait for ever"},
		"exits":        {`{"Action":"run","Test":"TestA"}{"Action":"pass","Test":"TestA"}{"Action":"run","Test":"TestB"}{"Action":"fail"}`, true, []string{"TestB"}, ""},
		"no compile":   {`{"Action":"build-fail"}{"Action":"fail"}`, true, nil, "does not compile"},
		"no test runs": {`{"Action":"fail"}`, true, nil, "before any test"},
	} {
		o, err := readEvents(strings.NewReader(c.in))
		if err != nil || o.failed != c.failed || !slices.Equal(o.tests, c.tests) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
		if got := o.problem(false); !strings.Contains(got, c.wrong) || (got == "") != (c.wrong == "") {
			t.Errorf("%s: problem %q, want %q", name, got, c.wrong)
		}
	}
}

func TestTeller_PrefersTheRuleInTheName(t *testing.T) {
	tests := []string{"TestA", "TestD10_Law", "TestDiff/D1_a", "TestX"}
	for rule, want := range map[string]string{"D1": "TestDiff/D1_a", "D10": "TestD10_Law", "C2": "TestA"} {
		if got := teller(tests, rule); got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}

func TestSummary_FailsUnlessEveryMutationIsCaught(t *testing.T) {
	plain, corpus := &Mutation{Name: "a|b", Rule: "D1", Why: "w"}, &Mutation{Name: "c", Rule: "D2", Why: "w", Corpus: true}
	caught := Result{Mutation: plain, Package: "./p", Test: "TestX"}
	for name, c := range map[string]struct {
		result Result
		ok     bool
		cell   string
	}{
		"caught":                    {caught, true, "| p `TestX` |"},
		"survived":                  {Result{Mutation: plain}, false, "**SURVIVED**"},
		"not tried":                 {Result{Mutation: plain, Problem: "does not compile"}, false, "**not tried**"},
		"never reached":             {Result{}, false, ""},
		"survived the corpus":       {Result{Mutation: corpus, Package: "./p", Test: "TestX"}, false, "| p `TestX` | **SURVIVED** |"},
		"caught by the corpus too":  {Result{Mutation: corpus, Package: "./p", Test: "TestX", Scenario: "s"}, true, "| p `TestX` | s |"},
		"caught by the corpus only": {Result{Mutation: corpus, Scenario: "s"}, false, "**SURVIVED**"},
	} {
		var out strings.Builder
		if err := summarize(&out, []Result{caught, c.result}); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		want := map[bool]string{true: "mutation: 2 mutations, 2 caught\n", false: "mutation: 2 mutations, 1 caught\n"}[c.ok]
		if out.String() != want {
			t.Errorf("%s: %q", name, out.String())
		}
		if c.result.done() && !strings.Contains(table([]Result{c.result}), c.cell) {
			t.Errorf("%s: table %q lacks %q", name, table([]Result{c.result}), c.cell)
		}
	}
}

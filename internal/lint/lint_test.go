package lint

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/finding/findingtest"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// scenario returns the files of a directory of testdata. roles-*.yaml are files for --roles; golden files are not read.
func scenario(t *testing.T, name string) ([]File, Options) {
	t.Helper()
	dir := filepath.Join("testdata", name)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []File
	options := Options{Enable: []string{fieldNoVerb}}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".yaml" && ext != ".json" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f := File{Name: e.Name(), Raw: raw}
		if strings.HasPrefix(e.Name(), "roles-") {
			options.Roles = append(options.Roles, f)
		} else {
			files = append(files, f)
		}
	}
	return files, options
}

func run(t *testing.T, files []File, options Options) *Result {
	t.Helper()
	result, errs := Run(files, options)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return result
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs: run go test -update and look at the difference; it is now\n%s", path, got)
	}
}

// text renders findings as the golden files have them.
func text(result *Result) string {
	var out strings.Builder
	for i := range result.Findings {
		f := &result.Findings[i]
		fmt.Fprintln(&out, f.String())
		if f.Fix != "" {
			fmt.Fprintln(&out, "\tfix: "+f.Fix)
		}
	}
	if result.Suppressed > 0 {
		fmt.Fprintf(&out, "%d suppressed\n", result.Suppressed)
	}
	return out.String()
}

// Each directory of testdata has files, their findings in findings.txt, and the fixed files as fixed-NAME.txt if --fix changes them. Fixing
// twice changes nothing, and a fix leaves no finding that has a fix.
func TestRun_Golden(t *testing.T) {
	dirs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			files, options := scenario(t, dir.Name())
			result := run(t, files, options)
			golden(t, filepath.Join("testdata", dir.Name(), "findings.txt"), []byte(text(result)))
			for _, f := range result.Findings {
				if f.Line < 1 || f.Column < 1 || f.Message == "" || f.Cure == "" || f.Object.Kind == "" {
					t.Errorf("%+v lacks its place or a text", f)
				}
			}
			checkFix(t, dir.Name(), files, options)
		})
	}
}

// Each rule has a finding in a golden file.
func TestRules_EachHasAScenario(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "*", "findings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for _, r := range Rules() {
		if !strings.Contains(string(all), "["+r.ID+"]") {
			t.Errorf("no directory of testdata has a finding of rule %s", r.ID)
		}
	}
}

func checkFix(t *testing.T, name string, files []File, options Options) {
	t.Helper()
	fixed, done, errs := Fix(files, options)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if again, more, errs := Fix(fixed, options); len(more) > 0 || len(errs) > 0 || !slices.EqualFunc(fixed, again, func(a, b File) bool { return string(a.Raw) == string(b.Raw) }) {
		t.Errorf("fixing again does %v, %v", more, errs)
	}
	for _, f := range run(t, fixed, options).Findings {
		if f.Fix != "" {
			t.Errorf("the fixed files have a fix: %s", f.String())
		}
	}
	for i := range files {
		if string(files[i].Raw) != string(fixed[i].Raw) {
			golden(t, filepath.Join("testdata", name, "fixed-"+files[i].Name+".txt"), fixed[i].Raw)
		} else if len(done) > 0 && len(files) == 1 {
			t.Errorf("fixes %v change nothing", done)
		}
	}
}

func TestSARIF_OfTheLint(t *testing.T) {
	files, options := scenario(t, "names")
	var plain []finding.Finding
	for _, f := range run(t, files, options).Findings {
		plain = append(plain, f.Finding)
	}
	raw, err := json.Marshal(Tool().SARIF(plain, nil))
	if err != nil {
		t.Fatal(err)
	}
	log := findingtest.ReadSARIF(t, raw, Rules())
	prints := map[string]bool{}
	for _, r := range log.Runs[0].Results {
		region := r.Locations[0].PhysicalLocation.Region
		if region == nil || region.StartLine < 1 || region.StartColumn < 1 {
			t.Errorf("%+v has no place", r)
		}
		if print := r.PartialFingerprints[Tool().Fingerprint]; prints[print] {
			t.Errorf("two findings have the fingerprint of %+v", r)
		} else {
			prints[print] = true
		}
	}
}

// Every rule has an ID of its own and all texts.
func TestRules_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] || r.ID != strings.ToLower(r.ID) || !slices.Contains(finding.Levels(), r.Level) {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
		for _, text := range []string{r.Meaning, r.Why, r.Cure} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", r.ID, text)
			}
		}
	}
	for id := range fixed {
		if !seen[id] || offByDefault[id] {
			t.Errorf("%s", id)
		}
	}
}

// A registry makes a verb well known, and takes the findings about its name away.
func TestRun_Registry(t *testing.T) {
	files, options := scenario(t, "names")
	builtIn, err := convention.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	registry, errs := builtIn.Decode("r.yaml", []byte("apiVersion: fieldperm.dev/v1alpha1\nkind: VerbRegistry\nverbs:\n- {verb: frobnication, meaning: m, owner: o}\n- {verb: example.org/speed, meaning: m, owner: o}\n"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	before := text(run(t, files, options))
	options.Registry = registry
	after := text(run(t, files, options))
	for _, verb := range []string{`"frobnication"`, `"example.org/speed"`} {
		if !strings.Contains(before, verb) || strings.Contains(after, verb) {
			t.Errorf("%s: before\n%s\nafter\n%s", verb, before, after)
		}
	}
}

func TestRun_ErrorsOfInput(t *testing.T) {
	const set = "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: a}\nspec: {uncoveredPermissions: [\"granular:scale\"]}\n"
	for name, test := range map[string]struct {
		file    string
		options Options
		want    string
	}{
		"syntax":               {"a: [", Options{}, "f.yaml: is no YAML or JSON: "},
		"JSON":                 {"{\"a\": 1,", Options{}, "f.yaml: line 1: "},
		"no UTF-8":             {"a: \xff", Options{}, "is not UTF-8"},
		"empty":                {"# nothing\n", Options{}, "f.yaml: is empty: "},
		"another kind":         {"apiVersion: v1\nkind: Pod\n", Options{}, `f.yaml:2:7: kind "Pod" of "v1" has no verbs: give CustomResourceDefinition`},
		"no object":            {"[1, 2]", Options{}, "f.yaml:1:1: is no object"},
		"unknown rule":         {set, Options{Disable: []string{"verb-speling"}}, `--disable: rule "verb-speling" does not exist: use "verb-spelling"`},
		"unknown rule, enable": {set, Options{Enable: []string{"x"}}, `--enable: rule "x" does not exist: docs/reference/lint.md`},
		"a rule that stays":    {set, Options{Disable: []string{"not-compiled"}}, `--disable "not-compiled": `},
		"roles with a typo":    {set, Options{Roles: []File{{"r.yaml", []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a, namespace: b}\nrule: []\n")}}}, "r.yaml"},
	} {
		result, errs := Run([]File{{"f.yaml", []byte(test.file)}}, test.options)
		if result != nil || len(errs) == 0 || !strings.Contains(errs[0].Error(), test.want) {
			t.Errorf("%s: got %v, %v, want %q", name, result, errs, test.want)
		}
	}
	if _, errs := Run(nil, Options{}); len(errs) != 1 {
		t.Errorf("no files: %v", errs)
	}
}

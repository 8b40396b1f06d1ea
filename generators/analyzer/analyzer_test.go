package analyzer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/fieldperm/fieldperm/generators/analyzer"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
)

func build(t *testing.T, settings analyzer.Settings) *analysis.Analyzer {
	t.Helper()
	a, err := analyzer.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Each rule has a finding in testdata/src/gadgets, and its fix is in the golden file.
func TestAnalyzer_FindsAndFixes(t *testing.T) {
	results := analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), build(t, analyzer.Settings{}), "gadgets", "plain")
	found := map[string]bool{}
	for _, r := range results {
		for _, d := range r.Diagnostics {
			found[d.Category] = true
			if !strings.HasSuffix(d.Message, "["+d.Category+"]") || !strings.Contains(d.Message, ": ") || !d.Pos.IsValid() {
				t.Errorf("%+v", d)
			}
		}
	}
	for _, r := range slices.Concat(convention.Rules(), convention.GoRules()) {
		if !found[r.ID] {
			t.Errorf("no finding of rule %s", r.ID)
		}
	}
}

// A package whose types cannot be resolved is refused by the drivers of analyzers; the analyzer itself does not panic on what is missing.
func TestAnalyzer_SettingsChangeWhatIsFound(t *testing.T) {
	registry := filepath.Join(t.TempDir(), "registry.yaml")
	if err := os.WriteFile(registry, []byte("apiVersion: fieldperm.dev/v1alpha1\nkind: VerbRegistry\nverbs:\n- {verb: frobnication, meaning: m, owner: o}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	count := func(settings analyzer.Settings, rule string) int {
		n := 0
		for _, r := range analysistest.Run(silent{}, analysistest.TestData(), build(t, settings), "gadgets") {
			for _, d := range r.Diagnostics {
				if d.Category == rule {
					n++
				}
			}
		}
		return n
	}
	if before, after := count(analyzer.Settings{}, convention.VerbNotRegistered), count(analyzer.Settings{Registry: []string{registry}}, convention.VerbNotRegistered); before != 1 || after != 0 {
		t.Errorf("a registry: %d findings before, %d after", before, after)
	}
	if n := count(analyzer.Settings{Disable: []string{convention.PowerByName}}, convention.PowerByName); n != 0 {
		t.Errorf("a disabled rule has %d findings", n)
	}
}

// silent takes the complaints about expectations that settings change.
type silent struct{}

func (silent) Errorf(string, ...any) {}

func TestSettings_Errors(t *testing.T) {
	for name, test := range map[string]struct {
		settings analyzer.Settings
		want     string
	}{
		"unknown rule":   {analyzer.Settings{Disable: []string{"power-by-nam"}}, `disable: rule "power-by-nam" does not exist: use "power-by-name"`},
		"a rule to stay": {analyzer.Settings{Disable: []string{"marker-misplaced"}}, `disable: rule "marker-misplaced" cannot be disabled: `},
		"missing file":   {analyzer.Settings{Registry: []string{"none.yaml"}}, "registry: open none.yaml: "},
		"faulty file":    {analyzer.Settings{Registry: []string{"go.mod"}}, "go.mod"},
	} {
		if _, err := analyzer.New(test.settings); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := analyzer.NewWithFlags()
	if err := a.Flags.Parse([]string{"-disable=power-by-nam"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Run(&analysis.Pass{}); err == nil || !strings.Contains(err.Error(), "power-by-nam") {
		t.Errorf("flags: %v", err)
	}
}

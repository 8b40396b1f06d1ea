package analyzer_test

import (
	"strings"
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis/analysistest"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"

	"github.com/fieldperm/fieldperm/generators/analyzer"
	_ "github.com/fieldperm/fieldperm/generators/analyzer/golangci"
	_ "github.com/fieldperm/fieldperm/generators/analyzer/kubeapilinter"
)

// golangci-lint finds the plug-in by its name, hands it the settings of its configuration, and runs the analyzer with types.
func TestGolangci_RunsThePlugin(t *testing.T) {
	newPlugin, err := register.GetPlugin(analyzer.Name)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := newPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	analyzers, err := plugin.BuildAnalyzers()
	if err != nil || len(analyzers) != 1 || plugin.GetLoadMode() != register.LoadModeTypesInfo {
		t.Fatalf("%v %v %s", err, analyzers, plugin.GetLoadMode())
	}
	analysistest.Run(t, analysistest.TestData(), analyzers[0], "gadgets")
	for settings, want := range map[string]string{"disabled": "unknown field", "disable": "does not exist"} {
		if _, err := newPlugin(map[string]any{settings: []string{"x"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// kube-api-linter has the linter among its own, on by default, and gives it its part of the configuration.
func TestKubeAPILinter_RunsTheLinter(t *testing.T) {
	r := registry.DefaultRegistry()
	if !r.DefaultLinters().Has(analyzer.Name) {
		t.Fatal("the linter is not registered")
	}
	only := config.Linters{Enable: []string{analyzer.Name}, Disable: []string{config.Wildcard}}
	analyzers, err := r.InitializeLinters(only, config.LintersConfig{})
	if err != nil || len(analyzers) != 1 {
		t.Fatalf("%v %v", err, analyzers)
	}
	analysistest.Run(t, analysistest.TestData(), analyzers[0], "gadgets")
	if _, err := r.InitializeLinters(only, config.LintersConfig{analyzer.Name: map[string]any{"disable": []string{"x"}}}); err == nil || !strings.Contains(err.Error(), `rule "x" does not exist`) {
		t.Errorf("%v", err)
	}
}

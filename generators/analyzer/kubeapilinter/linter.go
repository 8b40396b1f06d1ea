// Package kubeapilinter registers the analyzer as a linter of kube-api-linter, with the name fieldperm. A build of kube-api-linter imports it
// (docs/guide/lint.md). Start at Initializer.
package kubeapilinter

import (
	"golang.org/x/tools/go/analysis"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/initializer"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"

	"github.com/fieldperm/fieldperm/generators/analyzer"
)

// kube-api-linter finds its linters in a registry that their packages fill when they are imported.
func init() {
	registry.DefaultRegistry().RegisterLinter(Initializer())
}

// Initializer returns what kube-api-linter needs to build the analyzer. It is on by default, because it is only there if a build imports the package.
func Initializer() initializer.ConfigurableAnalyzerInitializer {
	return initializer.NewConfigurableInitializer(analyzer.Name, build, true, validate)
}

func build(settings *analyzer.Settings) (*analysis.Analyzer, error) {
	if settings == nil {
		settings = &analyzer.Settings{}
	}
	return analyzer.New(*settings)
}

func validate(settings *analyzer.Settings, at *field.Path) field.ErrorList {
	if settings == nil {
		return nil
	}
	if _, err := analyzer.New(*settings); err != nil {
		return field.ErrorList{field.Invalid(at, settings, err.Error())}
	}
	return nil
}

// Package golangci registers the analyzer as a module plug-in of golangci-lint, with the name fieldperm. A custom build of golangci-lint imports
// it (docs/guide/lint.md). Start at New.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/fieldperm/fieldperm/generators/analyzer"
)

// golangci-lint finds its plug-ins in a registry that their packages fill when they are imported.
func init() {
	register.Plugin(analyzer.Name, New)
}

// New returns the plug-in with the settings of linters.settings.custom.fieldperm.settings.
func New(settings any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[analyzer.Settings](settings)
	if err != nil {
		return nil, err
	}
	one, err := analyzer.New(s)
	if err != nil {
		return nil, err
	}
	return plugin{one}, nil
}

type plugin struct{ analyzer *analysis.Analyzer }

// BuildAnalyzers returns the analyzer.
func (p plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{p.analyzer}, nil
}

// GetLoadMode says that the analyzer needs types.
func (p plugin) GetLoadMode() string { return register.LoadModeTypesInfo }

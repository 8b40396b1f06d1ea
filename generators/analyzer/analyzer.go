package analyzer

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/internal/spelling"
)

// Name is the name of the analyzer, and of the plug-ins.
const Name = "fieldperm"

const doc = `check permission markers of fieldperm in Go types

The analyzer reports markers with mistakes or without effect, verbs whose names break the conventions of
KEP-3617, parameters without a source, and fields such as image that have no verb of their own.
docs/reference/lint.md of fieldperm has all rules.`

// Settings are the settings of the analyzer. Their JSON is that of the plug-ins.
type Settings struct {
	// Registry are files of well-known verbs, kind: VerbRegistry.
	Registry []string `json:"registry,omitempty"`
	// Disable are rules to leave out.
	Disable []string `json:"disable,omitempty"`
}

// New returns the analyzer. The errors of settings name the cure.
func New(settings Settings) (*analysis.Analyzer, error) {
	c, err := newChecker(settings)
	if err != nil {
		return nil, err
	}
	return &analysis.Analyzer{Name: Name, Doc: doc, URL: "https://github.com/fieldperm/fieldperm/blob/main/docs/guide/lint.md", Run: c.run}, nil
}

// NewWithFlags returns the analyzer for a command line, with the settings as flags.
func NewWithFlags() *analysis.Analyzer {
	var settings Settings
	out := &analysis.Analyzer{Name: Name, Doc: doc, URL: "https://github.com/fieldperm/fieldperm/blob/main/docs/guide/lint.md", Flags: *flag.NewFlagSet(Name, flag.ContinueOnError)}
	list := func(into *[]string) func(string) error {
		return func(text string) error {
			*into = append(*into, strings.Split(text, ",")...)
			return nil
		}
	}
	out.Flags.Func("registry", "files of well-known verbs, kind: VerbRegistry", list(&settings.Registry))
	out.Flags.Func("disable", "rules to leave out", list(&settings.Disable))
	out.Run = func(pass *analysis.Pass) (any, error) {
		c, err := newChecker(settings)
		if err != nil {
			return nil, err
		}
		return c.run(pass)
	}
	return out
}

// checker holds what is the same for each package.
type checker struct {
	convention.Checker
	disabled map[string]bool
}

// cannotBeDisabled are the rules about markers that fieldperm's generators refuse anyway.
var cannotBeDisabled = []string{convention.MarkerInvalid, convention.MarkerMisplaced, convention.MarkerTwice, convention.MarkerWithoutVerb, convention.VerbSpelling}

// These rules have the IDs that fieldperm-gen lint gives them.
const (
	treatmentUnknown   = "treatment-unknown"
	parameterNoSource  = "parameter-without-source"
	sourceNoUser       = "source-without-user"
	atomicItemVerb     = "atomic-list-with-item-verb"
	suppressionInvalid = "suppression-invalid"
)

// rules returns the IDs of all rules of the analyzer.
func rules() []string {
	out := []string{treatmentUnknown, parameterNoSource, sourceNoUser, atomicItemVerb, suppressionInvalid}
	for _, r := range slices.Concat(convention.Rules(), convention.GoRules()) {
		out = append(out, r.ID)
	}
	return out
}

func newChecker(settings Settings) (*checker, error) {
	c := &checker{disabled: map[string]bool{}}
	var errs []error
	for _, id := range settings.Disable {
		if err := mayDisable("disable", id); err != nil {
			errs = append(errs, err)
		}
		c.disabled[id] = true
	}
	registry, err := convention.BuiltIn()
	if err != nil {
		return nil, err
	}
	for _, name := range settings.Registry {
		raw, err := os.ReadFile(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("registry: %w: name a file that can be read", err))
			continue
		}
		more, faults := registry.Decode(name, raw)
		if errs = append(errs, faults...); len(faults) == 0 {
			registry = more
		}
	}
	c.Registry = *registry
	return c, errors.Join(errs...)
}

// mayDisable returns why a rule cannot be disabled or suppressed.
func mayDisable(at, id string) error {
	switch {
	case slices.Contains(cannotBeDisabled, id), id == suppressionInvalid, id == treatmentUnknown:
		return fmt.Errorf("%s: rule %q cannot be disabled: fieldperm refuses what it reports: correct that", at, id)
	case !slices.Contains(rules(), id):
		cure := "docs/reference/lint.md of fieldperm has all rules"
		if near := spelling.Nearest(id, rules()); near != "" {
			cure = fmt.Sprintf("use %q", near)
		}
		return fmt.Errorf("%s: rule %q does not exist: %s", at, id, cure)
	}
	return nil
}

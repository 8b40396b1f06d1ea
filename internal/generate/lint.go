package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
	"github.com/fieldperm/fieldperm/internal/printable"
	"github.com/fieldperm/fieldperm/schema/load"
)

// lintFlags are the flags of fieldperm-gen lint.
type lintFlags struct {
	output, failOn                   string
	registry, roles, enable, disable []string
	fix                              bool
}

// lintOutputs are the values of --output.
func lintOutputs() []string { return []string{"text", "json", "sarif"} }

func newLint() *cobra.Command {
	var flags lintFlags
	command := &cobra.Command{
		Use:   "lint FILES... [-o text|json|sarif] [--fix] [--registry FILES] [--roles FILES]",
		Short: "Find faults in permission schemas",
		Long: `lint reads CustomResourceDefinitions with permission verbs, PermissionSchemas and UncoveredPermissionSets, and
reports what their author probably does not mean, such as a verb that no change can need, or a version without the
verb of another. docs/reference/lint.md has all rules. In a directory it reads *.yaml, *.yml and *.json, without
subdirectories.

A comment "# fieldperm:lint disable=RULE reason" leaves findings out.

Ends with 0 if there is no finding at the level of --fail-on or above, 1 if there is one, 2 for an error of flags
or files.`,
		Example: `  # The definitions of a repository, in CI: warnings too make it fail.
  fieldperm-gen lint config/crd/bases --fail-on warning

  # For code scanning.
  fieldperm-gen lint config/crd/bases permissions -o sarif >lint.sarif

  # Correct what has one fix, and print the rest.
  fieldperm-gen lint gadgets.yaml --fix

  # Is there a role for each barrier?
  fieldperm-gen lint gadgets.yaml --roles config/rbac --registry verbs.yaml`,
		RunE: flags.run,
	}
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return inputError(fmt.Errorf("%w: see %q", err, command.CommandPath()+" --help"))
	})
	var levels []string
	for _, l := range finding.Levels() {
		levels = append(levels, string(l))
	}
	f := command.Flags()
	f.StringVarP(&flags.output, "output", "o", "text", "text, json or sarif")
	f.StringSliceVar(&flags.registry, "registry", nil, "`FILES` or directories with well-known verbs, kind: VerbRegistry")
	f.StringSliceVar(&flags.roles, "roles", nil, "`FILES` or directories with Roles and ClusterRoles, for barriers without a holder")
	f.StringSliceVar(&flags.enable, "enable", nil, "`RULES` that are off by default: field-without-verb")
	f.StringSliceVar(&flags.disable, "disable", nil, "`RULES` to leave out")
	f.BoolVar(&flags.fix, "fix", false, "correct in place what has one fix")
	f.StringVar(&flags.failOn, "fail-on", string(finding.Error), "`LEVEL` from which a finding makes the exit code 1: "+strings.Join(levels, ", "))
	return command
}

// inputError returns the errors of flags and files with their exit code.
func inputError(errs ...error) error { return &exit{exitInput, errs} }

func (f *lintFlags) run(command *cobra.Command, args []string) error {
	files, options, errs := f.input(args)
	if len(errs) > 0 {
		return inputError(errs...)
	}
	if f.fix {
		fixed, done, errs := lint.Fix(files, options)
		if len(errs) > 0 {
			return inputError(errs...)
		}
		if err := f.writeFixed(command, files, fixed, done); err != nil {
			return inputError(err)
		}
		files = fixed
	}
	result, errs := lint.Run(files, options)
	if len(errs) > 0 {
		return inputError(errs...)
	}
	if err := f.print(command, result); err != nil {
		return inputError(err)
	}
	if slices.ContainsFunc(result.Findings, func(one lint.Finding) bool { return one.Level.AtLeast(finding.Level(f.failOn)) }) {
		return &exit{code: exitFindings}
	}
	return nil
}

// input checks the flags and reads the files.
func (f *lintFlags) input(args []string) (files []lint.File, options lint.Options, errs []error) {
	if !slices.Contains(lintOutputs(), f.output) {
		errs = append(errs, fmt.Errorf("--output %q is no output: use %s", f.output, strings.Join(lintOutputs(), ", ")))
	}
	if !slices.Contains(finding.Levels(), finding.Level(f.failOn)) {
		errs = append(errs, fmt.Errorf("--fail-on %q is no level: use %s, %s or %s", f.failOn, finding.Error, finding.Warning, finding.Note))
	}
	if len(args) == 0 {
		errs = append(errs, errors.New("FILES are missing: name files or directories with CustomResourceDefinitions, PermissionSchemas and UncoveredPermissionSets"))
	}
	files, faults := readAll("", args)
	errs = append(errs, faults...)
	roles, faults := readAll("--roles: ", f.roles)
	errs = append(errs, faults...)
	registry, faults := readRegistry(f.registry)
	return files, lint.Options{Registry: registry, Roles: roles, Enable: f.enable, Disable: f.disable}, append(errs, faults...)
}

// readAll reads files and directories, each file once.
func readAll(flag string, paths []string) ([]lint.File, []error) {
	var out []lint.File
	var errs []error
	for _, path := range paths {
		names, err := load.Paths(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s%s: cannot be read: %w: give a file or a directory", flag, path, err))
			continue
		}
		if len(names) == 0 {
			// A pipeline with a wrong path would pass.
			errs = append(errs, fmt.Errorf("%s%s: has no *.yaml, *.yml or *.json: give a directory that has some", flag, path))
		}
		for _, name := range names {
			if slices.ContainsFunc(out, func(f lint.File) bool { return f.Name == name }) {
				continue
			}
			raw, err := os.ReadFile(name)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s%s: cannot be read: %w: give a file or a directory", flag, name, err))
				continue
			}
			out = append(out, lint.File{Name: name, Raw: raw})
		}
	}
	return out, errs
}

// readRegistry returns the built-in registry with the verbs of files.
func readRegistry(paths []string) (*convention.Registry, []error) {
	registry, err := convention.BuiltIn()
	if err != nil {
		return nil, []error{err}
	}
	files, errs := readAll("--registry: ", paths)
	for _, file := range files {
		more, faults := registry.Decode(file.Name, file.Raw)
		if errs = append(errs, faults...); len(faults) == 0 {
			registry = more
		}
	}
	return registry, errs
}

// writeFixed writes the files that have changed, and lists the changes on the error stream, which no output format uses.
func (f *lintFlags) writeFixed(command *cobra.Command, before, after []lint.File, done []lint.Fixed) error {
	for i := range after {
		if string(before[i].Raw) == string(after[i].Raw) {
			continue
		}
		if err := os.WriteFile(after[i].Name, after[i].Raw, 0o644); err != nil { //nolint:gosec // The file is the user's and is there already.
			return fmt.Errorf("--fix: %w", err)
		}
	}
	for _, one := range done {
		say(command.ErrOrStderr(), "fixed: %s:%d: %s [%s]", one.File, one.Line, one.What, one.Rule)
	}
	return nil
}

// lintAnswer is the output as JSON. Its names are a contract.
type lintAnswer struct {
	Findings []lint.Finding `json:"findings"`
	Summary  lintSummary    `json:"summary"`
}

type lintSummary struct {
	finding.Counts
	Objects    int `json:"objects"`
	Suppressed int `json:"suppressed"`
}

func (f *lintFlags) print(command *cobra.Command, result *lint.Result) error {
	summary := lintSummary{Objects: result.Objects, Suppressed: result.Suppressed}
	plain := make([]finding.Finding, 0, len(result.Findings))
	for _, one := range result.Findings {
		summary.Add(one.Level)
		plain = append(plain, one.Finding)
	}
	out := command.OutOrStdout()
	var answer any
	switch f.output {
	case "text":
		for i := range result.Findings {
			fmt.Fprintln(out, result.Findings[i].String())
		}
		text := fmt.Sprintf("%s, %s and %s in %s", number(summary.Errors, "error"), number(summary.Warnings, "warning"), number(summary.Notes, "note"), number(summary.Objects, "object"))
		if summary.Suppressed > 0 {
			text += fmt.Sprintf(", %d suppressed", summary.Suppressed)
		}
		_, err := fmt.Fprintln(out, text+".")
		return err
	case "json":
		answer = lintAnswer{Findings: append([]lint.Finding{}, result.Findings...), Summary: summary}
	default:
		answer = lint.Tool().SARIF(plain, nil)
	}
	text, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return err
	}
	_, err = out.Write(append(printable.JSON(text), '\n'))
	return err
}

func number(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

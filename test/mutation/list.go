package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/mutation/edit"
)

// listFile is the list of mutations, relative to the module's root.
const listFile = "test/mutation/mutations.yaml"

// Mutation is one way to break the code.
type Mutation struct {
	// Name says what the broken code does, as in "the order of items does not count".
	Name string `json:"name"`
	// Rule is the broken rule of docs/semantics.md, or a word if there is no rule.
	Rule string `json:"rule"`
	// The edit breaks the code: in or file, from and to.
	edit.Edit
	// Packages are the packages whose tests must fail. They run in this order until the first failure.
	Packages []string `json:"packages"`
	// Tests selects tests of these packages, as go test -run does, if all would take long.
	Tests string `json:"tests,omitempty"`
	// Why says what harm the broken code would do.
	Why string `json:"why"`
	// Corpus says that a scenario must fail too.
	Corpus bool `json:"corpus,omitempty"`
	// Timeout is shorter than usual for a mutation that makes a test wait for ever, as in "10s".
	Timeout string `json:"timeout,omitempty"`

	// mutated is the changed file.
	mutated edit.Files
	timeout time.Duration
}

// load reads the list and applies every mutation to the current code. The error names every
// mutation that cannot be applied.
func load(root string) ([]Mutation, error) {
	raw, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		return nil, err
	}
	var list struct {
		Mutations []Mutation `json:"mutations"`
	}
	if err := yaml.UnmarshalStrict(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", listFile, err)
	}
	var errs []error
	names := map[string]bool{}
	tree := edit.NewTree(root)
	for i := range list.Mutations {
		m := &list.Mutations[i]
		if err := m.prepare(tree); err != nil {
			errs = append(errs, fmt.Errorf("%s: mutation %q: %w", listFile, m.Name, err))
		}
		if names[m.Name] {
			errs = append(errs, fmt.Errorf("%s: mutation %q: is there twice: give each a name of its own", listFile, m.Name))
		}
		names[m.Name] = true
	}
	return list.Mutations, errors.Join(errs...)
}

func (m *Mutation) prepare(tree *edit.Tree) error {
	if m.Name == "" || m.Rule == "" || m.Why == "" || len(m.Packages) == 0 {
		return errors.New("lacks one of name, rule, packages and why: fill it in")
	}
	m.timeout = usualTimeout
	if m.Timeout != "" {
		var err error
		if m.timeout, err = time.ParseDuration(m.Timeout); err != nil {
			return fmt.Errorf("timeout %q is no duration: write 10s", m.Timeout)
		}
	}
	var err error
	m.mutated, err = tree.Apply(m.Edit)
	return err
}

func choose(mutations []Mutation, selected *regexp.Regexp) []Mutation {
	return slices.DeleteFunc(mutations, func(m Mutation) bool { return !selected.MatchString(m.Rule) && !selected.MatchString(m.Name) })
}

// packagesOf returns the packages of all mutations, each once, in the order in which they are named.
func packagesOf(mutations []Mutation) []string {
	var out []string
	for i := range mutations {
		for _, p := range mutations[i].Packages {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// testsOf returns what matches the tests of a package that some mutation needs, "" for all.
func testsOf(mutations []Mutation, pkg string) string {
	var out []string
	for i := range mutations {
		m := &mutations[i]
		if !slices.Contains(m.Packages, pkg) || slices.Contains(out, m.Tests) {
			continue
		}
		if m.Tests == "" {
			return ""
		}
		out = append(out, m.Tests)
	}
	return strings.Join(out, "|")
}

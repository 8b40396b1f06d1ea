package main

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/lint"
	"github.com/fieldperm/fieldperm/internal/lint/convention"
)

const lintIntroduction = "The rules of `fieldperm-gen lint` and of the analyzer for Go types ([lint](../guide/lint.md)). IDs do not change.\n\n" +
	"| level | meaning |\n|---|---|\n" +
	"| `error` | fieldperm or a generator refuses it, or it does not do what it says |\n" +
	"| `warning` | it does more or less than its author probably means |\n" +
	"| `note` | to be known |\n\n" +
	"The level of a rule is that of most of its findings. The analyzer has no levels: golangci-lint gives them. It has the rules whose ID begins with " +
	"`marker-`, which only it has, and those whose section says so."

// inGo are the rules of fieldperm-gen lint that the analyzer has too, beside those about names.
var inGo = []string{"treatment-unknown", "parameter-without-source", "source-without-user", "atomic-list-with-item-verb", "suppression-invalid"}

// lintPage lists the rules of the lint and of the analyzer.
func lintPage(string) ([]byte, error) {
	notes := map[string]string{}
	note := func(id, text string) { notes[id] = strings.TrimSpace(notes[id] + " " + text) }
	for _, r := range lint.Rules() {
		if lint.OffByDefault(r.ID) {
			note(r.ID, "Off by default.")
		}
		if lint.CannotBeDisabled(r.ID) {
			note(r.ID, "The rule can be neither disabled nor suppressed.")
		}
	}
	for _, r := range convention.Rules() {
		note(r.ID, "The analyzer has the rule too.")
	}
	for _, id := range inGo {
		note(id, "The analyzer has the rule too, for the types of one package.")
	}
	for _, r := range convention.GoRules() {
		note(r.ID, "Only the analyzer has the rule. It can be neither disabled nor suppressed.")
	}
	page := newPage("Lint rules", lintIntroduction)
	page.rules(slices.Concat(lint.Rules(), convention.GoRules()), notes)
	return page.Bytes(), nil
}

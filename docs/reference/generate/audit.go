package main

import (
	"fmt"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/finding"
)

const auditIntroduction = "The rules of `kubectl fieldperm audit` ([ask](../guide/ask.md#are-my-roles-right)). IDs do not change.\n\n" +
	"| level | meaning |\n|---|---|\n" +
	"| `error` | the grant or the barrier does not do what it says |\n" +
	"| `warning` | it does more or less than its author probably means, or it cannot be told for sure that it is an error |\n" +
	"| `note` | to be known |\n\n" +
	"The level of a rule is that of most of its findings. A finding has a lower one if less is known."

// auditPage lists the rules of the audit.
func auditPage(string) ([]byte, error) {
	page := newPage("Audit rules", auditIntroduction)
	page.rules(audit.Rules(), nil)
	return page.Bytes(), nil
}

// rules writes a table of rules, and a section for each. notes are sentences about single rules.
func (m *markdown) rules(rules []finding.Rule, notes map[string]string) {
	var index [][]string
	for _, r := range rules {
		index = append(index, []string{fmt.Sprintf("[`%s`](#%[1]s)", r.ID), string(r.Level), r.Meaning})
	}
	m.table([]string{"rule", "level", "meaning"}, index)
	for _, r := range rules {
		m.heading(2, r.ID)
		text := fmt.Sprintf("%s Level: `%s`.", r.Meaning, r.Level)
		if note := notes[r.ID]; note != "" {
			text += " " + note
		}
		m.paragraph(text)
		m.paragraph("**Why.** " + r.Why)
		m.paragraph("**What to do.** " + r.Cure)
	}
}

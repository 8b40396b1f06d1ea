package plugin

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// auditAnswer is the output as JSON and YAML. Its names are a contract.
type auditAnswer struct {
	Findings []audit.Finding `json:"findings"`
	Summary  auditSummary    `json:"summary"`
	Missing  []missingEntry  `json:"missing,omitempty"`
	// Interrupted means that not all objects were read.
	Interrupted bool `json:"interrupted,omitempty"`
}

// auditSummary has the numbers of findings, and of objects that were read, by kind.
type auditSummary struct {
	audit.Counts
	Objects map[string]int `json:"objects"`
}

// lineOf returns a finding as a line, in the form of compilers: the file and line first, if there are any, the rule last.
func lineOf(f *audit.Finding) string {
	var out strings.Builder
	if f.File != "" {
		out.WriteString(f.File + ":")
		if f.Line > 0 {
			fmt.Fprintf(&out, "%d:", f.Line)
		}
		out.WriteByte(' ')
	}
	fmt.Fprintf(&out, "%s: %s: ", f.Level, f.Object)
	if f.Path != "" {
		out.WriteString(f.Path + ": ")
	}
	fmt.Fprintf(&out, "%s: %s [%s]", f.Message, f.Cure, f.Rule)
	return printable.Text(out.String()) + "\n"
}

// print writes the answer, or what of it was not written before.
func (o *auditing) print(scan *audit.Scan, known *traced) error {
	notes := known.notes()
	if o.interrupted {
		notes = append(notes, strings.ToUpper(interruption[:1])+interruption[1:]+".")
	}
	switch o.output {
	case outputText:
		return o.write([]byte(o.summary(scan) + "\n"))
	case outputSARIF:
		text, err := json.MarshalIndent(audit.Tool().SARIF(o.found, notes), "", "  ")
		if err != nil {
			return err
		}
		return o.write(append(printable.JSON(text), '\n'))
	case outputHTML:
		t := page.Table{Title: o.summary(scan), Columns: []string{"LEVEL", "RULE", "OBJECT", "PLACE", "FINDING", "CURE"}}
		for i := range o.found {
			f := &o.found[i]
			place := f.Path
			if f.File != "" {
				place += fmt.Sprintf(" (%s:%d)", f.File, f.Line)
			}
			t.Rows = append(t.Rows, []string{string(f.Level), f.Rule, f.Object.String(), place, f.Message, f.Cure})
		}
		return o.writeTables("Audit of granular verbs", page.Notes{Lacks: notes}, t)
	}
	out := auditAnswer{Findings: []audit.Finding{}, Summary: auditSummary{o.counts, scan.Read}, Interrupted: o.interrupted}
	out.Findings = append(out.Findings, o.found...)
	out.Missing = missingEntries(known.missing)
	text, err := encoded(out, o.output)
	if err != nil {
		return err
	}
	return o.write(text)
}

// summary is the last line of the text.
func (o *auditing) summary(scan *audit.Scan) string {
	number := func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
	var read []string
	for _, kind := range []string{"ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"} {
		read = append(read, number(scan.Read[kind], kind))
	}
	return fmt.Sprintf("%s, %s and %s in %s.", number(o.counts.Errors, "error"), number(o.counts.Warnings, "warning"), number(o.counts.Notes, "note"), strings.Join(read, ", "))
}

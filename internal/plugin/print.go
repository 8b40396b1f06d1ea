package plugin

import (
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/review"
)

func (o *options) print(r *review.Report) error {
	var out []byte
	var err error
	switch o.output {
	case outputJSON:
		out, err = r.JSON()
	case outputYAML:
		out, err = r.YAML()
	case outputHTML:
		return o.writeTables("Review of a write: "+verdict(r.Allowed), page.Notes{Lacks: r.Notes}, reviewTables(r)...)
	default:
		out = r.Table()
	}
	if err != nil {
		return err
	}
	return o.write(out)
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

// reviewTables has the report in full. In contrast to Report.Table it shortens no text.
func reviewTables(r *review.Report) []page.Table {
	decision := page.Table{Title: "Decision", Columns: []string{"DECISION", "MODE", "MESSAGE"}, Rows: [][]string{{verdict(r.Allowed), r.Mode, r.Message}}}
	changes := page.Table{Title: "Changed fields", Columns: []string{"PATH", "OPERATION", "NEEDS ANY OF", "COVERED BY"}}
	for i := range r.Changes {
		c := &r.Changes[i]
		needs := "no verb covers it"
		if verbs := c.Candidates(); len(verbs) > 0 {
			needs = strings.Join(verbs, ", ")
			if c.Barrier >= 0 {
				needs += " (barrier)"
			}
		}
		changes.Rows = append(changes.Rows, []string{c.Path, c.Operation, needs, c.CoveredBy})
	}
	checks := page.Table{Title: "Verbs that were asked for, in this order", Columns: []string{"ORDER", "VERB", "ANSWER"}}
	for i, c := range r.Checks {
		checks.Rows = append(checks.Rows, []string{strconv.Itoa(i + 1), c.Verb, map[bool]string{true: "yes", false: "no"}[c.Allowed]})
	}
	return []page.Table{decision, changes, checks}
}

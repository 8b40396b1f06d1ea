package plugin

import (
	"fmt"
	"strings"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// title is the title of a page.
func (o *whoCan) title(w *access.Write, p *fieldtree.Place) string {
	what := p.Kind.ResourceName()
	if w.Name != "" {
		what += " " + w.Name
	}
	if o.field != "" {
		what = o.field + " of " + what
	}
	switch {
	case w.AllNamespaces:
		what += " in all namespaces"
	case w.Namespace != "":
		what += " in " + w.Namespace
	}
	return fmt.Sprintf("Subjects that may %s %s", w.Verb, what)
}

// print writes the answer about one field.
func (o *whoCan) print(known *traced, w *access.Write, p *fieldtree.Place, rows []access.Row, notes []string, more ...page.Table) error {
	table := rowsTable(rows)
	if len(more) > 0 {
		table.Title = o.title(w, p)
	}
	tables := append([]page.Table{table}, more...)
	if o.output == outputHTML {
		return o.writeTables(o.title(w, p), page.Notes{Lacks: known.notes(), Facts: notes}, tables...)
	}
	if len(rows) == 0 {
		tables = more
	}
	out := textOf(tables)
	if len(rows) == 0 {
		out = append([]byte("No subject of a binding may "+w.Verb+" it.\n"), out...)
	}
	out = append(out, '\n')
	for _, note := range notes {
		out = fmt.Appendf(out, "Note: %s\n", printable.Text(note))
	}
	return o.write(out)
}

// page writes the answer about all fields as a page of the tree of the kind.
func (o *whoCan) page(known *traced, w *access.Write, p *fieldtree.Place, of *page.Access, notes []string) error {
	out, err := page.RenderAccess(printable.Text(o.title(w, p)), page.Notes{Lacks: known.notes(), Facts: notes}, &fieldtree.Forest{Kinds: []*fieldtree.Kind{p.Kind}}, of)
	if err != nil {
		return err
	}
	return o.write(out)
}

// rowsTable has a row for each way of each subject.
func rowsTable(rows []access.Row) page.Table {
	t := page.Table{Columns: []string{"KIND", "NAME", "HOW", "VERBS", "BINDINGS", "CONDITION"}}
	for i := range rows {
		for j := range rows[i].Ways {
			w := &rows[i].Ways[j]
			t.Rows = append(t.Rows, []string{
				rows[i].Subject.Kind, rows[i].Subject.String(), string(w.How()), strings.Join(w.Texts(), ", "), grantsText(w), conditionsText(w.Conditions),
			})
		}
	}
	return t
}

// maxGrants bounds the bindings in a cell.
const maxGrants = 3

// grantsText names the bindings of each verb. Verbs with the same bindings stand together.
func grantsText(w *access.Way) string {
	var texts []string
	verbs := map[string][]string{}
	for _, v := range w.Verbs {
		text := grantText(v.Grants)
		if verbs[text] == nil {
			texts = append(texts, text)
		}
		verbs[text] = append(verbs[text], v.Verb)
	}
	if len(texts) == 1 {
		return texts[0]
	}
	for i, text := range texts {
		texts[i] = strings.Join(verbs[text], ", ") + ": " + text
	}
	return strings.Join(texts, "; ")
}

func grantText(grants []access.Grant) string {
	var out []string
	for i, g := range grants {
		switch {
		case i == maxGrants:
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(grants)-maxGrants)
		default:
			out = append(out, g.String())
		}
	}
	return strings.Join(out, ", ")
}

func conditionsText(all []access.Condition) string {
	var out []string
	for _, c := range all {
		out = append(out, c.String())
	}
	return strings.Join(out, "; ")
}

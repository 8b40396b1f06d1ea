package page

import (
	"bytes"
	_ "embed" // The import embeds the parts of the page.
	"fmt"
	"regexp"
	"strings"
)

var (
	//go:embed static/table_controls.html
	tableControls string
	//go:embed static/table_footer.html
	tableFooter string
	//go:embed static/table.js
	tableScript string
)

// Table is a table of a command. Rows have as many cells as Columns has titles. All of it is text.
type Table struct {
	// Title stands above the table, "" for none.
	Title   string
	Columns []string
	Rows    [][]string
}

// RenderTables returns a page of tables. The title is text. Equal tables give equal
// bytes. The rows are in the HTML, so that the page can be read without scripts. static/table.js sorts and filters them.
func RenderTables(title string, notes Notes, tables ...Table) ([]byte, error) {
	var content strings.Builder
	content.WriteString("<main>\n")
	for i := range tables {
		if err := tables[i].write(&content, i, title); err != nil {
			return nil, err
		}
	}
	content.WriteString("</main>\n" + tableFooter)
	var out bytes.Buffer
	err := frame{title: title, notes: notes, skip: "Skip to the table", controls: tableControls, content: content.String(), scripts: []string{tableScript}}.write(&out)
	return out.Bytes(), err
}

func (t *Table) write(out *strings.Builder, i int, page string) error {
	caption := t.Title
	if caption == "" {
		caption = page
	}
	fmt.Fprintf(out, "<table id=\"table%d\">\n<caption>%s</caption>\n<thead><tr>", i, shown(caption))
	for _, column := range t.Columns {
		fmt.Fprintf(out, `<th scope="col">%s</th>`, shown(column))
	}
	out.WriteString("</tr></thead>\n<tbody>\n")
	for r, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("page: table %q: row %d has %d cells, and there are %d columns: give one cell for each", t.Title, r, len(row), len(t.Columns))
		}
		out.WriteString("<tr>")
		for _, cell := range row {
			switch {
			case cell == "":
				out.WriteString("<td>-</td>")
			case code.MatchString(cell):
				fmt.Fprintf(out, `<td class="code">%s</td>`, shown(cell))
			default:
				fmt.Fprintf(out, "<td>%s</td>", shown(cell))
			}
		}
		out.WriteString("</tr>\n")
	}
	if len(t.Rows) == 0 {
		fmt.Fprintf(out, "<tr class=\"none\"><td colspan=\"%d\">Nothing.</td></tr>\n", max(1, len(t.Columns)))
	}
	out.WriteString("</tbody>\n</table>\n")
	return nil
}

// code matches what a page shows in the letters of code: verbs, paths of fields, and conditions in CEL.
var code = regexp.MustCompile(`^(granular\b|(create|update|patch|delete|deletecollection|\*)([, ]|$)|\.[\w\[]|\[|!?\(*(object|oldObject|request|self|authorizer)\.)`)

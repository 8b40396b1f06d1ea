package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// The values of --output.
const (
	outputTable = "table"
	outputText  = "text"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputHTML  = "html"
)

// outputIs returns an error if the value of --output is none of those that a command knows.
func (o *options) outputIs(known ...string) error {
	if slices.Contains(known, o.output) {
		return nil
	}
	last := len(known) - 1
	return fmt.Errorf("--output %q is not known: use %s or %s", o.output, strings.Join(known[:last], ", "), known[last])
}

// write writes the answer of a command. A reader that leaves, such as head, has what it wants.
func (o *options) write(answer []byte) error {
	_, err := o.streams.Out.Write(answer)
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("answer: %w: give an output that can be written to", err)
}

// writeTables writes tables as text, or as a page for --output html. The title and the notes are of the page
// only.
func (o *options) writeTables(title string, notes page.Notes, tables ...page.Table) error {
	if o.output == outputHTML {
		out, err := page.RenderTables(printable.Text(title), page.Notes{Lacks: printableCells(notes.Lacks), Facts: printableCells(notes.Facts)}, printableTables(tables)...)
		if err != nil {
			return err
		}
		return o.write(out)
	}
	return o.write(textOf(tables))
}

// printableTables returns tables in which every character of a cell is printable. A cell may have several lines.
func printableTables(tables []page.Table) []page.Table {
	out := make([]page.Table, len(tables))
	for i, t := range tables {
		out[i] = page.Table{Title: printable.Text(t.Title), Columns: printableCells(t.Columns)}
		for _, row := range t.Rows {
			out[i].Rows = append(out[i].Rows, printableCells(row))
		}
	}
	return out
}

func printableCells(cells []string) []string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		lines := strings.Split(cell, "\n")
		for j := range lines {
			lines[j] = printable.Text(lines[j])
		}
		out[i] = strings.Join(lines, "\n")
	}
	return out
}

// textOf returns tables as text, aligned in columns.
func textOf(tables []page.Table) []byte {
	var out bytes.Buffer
	for i, t := range tables {
		if i > 0 {
			out.WriteByte('\n')
		}
		if t.Title != "" {
			fmt.Fprintf(&out, "%s\n", printable.Text(t.Title))
		}
		w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
		for _, row := range append([][]string{t.Columns}, t.Rows...) {
			texts := make([]string, len(row))
			for j, cell := range row {
				texts[j] = shown(cell)
			}
			_, _ = fmt.Fprintln(w, strings.Join(texts, "\t"))
		}
		_ = w.Flush()
	}
	return out.Bytes()
}

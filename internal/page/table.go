package page

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// Table is a table of a command. Rows have as many cells as Columns has titles. All of it is text.
type Table struct {
	// Title stands above the table, "" for none.
	Title   string
	Columns []string
	Rows    [][]string
}

// RenderTables returns a page of tables. The title is text, and so are the notes, which say what the page lacks. Equal tables give equal
// bytes.
func RenderTables(title string, notes []string, tables ...Table) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title><h1>%[1]s</h1>\n", html.EscapeString(title))
	for _, note := range notes {
		fmt.Fprintf(&out, "<p>%s</p>\n", html.EscapeString(note))
	}
	for _, t := range tables {
		fmt.Fprintf(&out, "<h2>%s</h2>\n<table><tr>%s</tr>\n", html.EscapeString(t.Title), cells("th", t.Columns))
		for _, row := range t.Rows {
			fmt.Fprintf(&out, "<tr>%s</tr>\n", cells("td", row))
		}
		out.WriteString("</table>\n")
	}
	return out.Bytes(), nil
}

func cells(tag string, texts []string) string {
	var out strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&out, "<%s>%s</%[1]s>", tag, html.EscapeString(text))
	}
	return out.String()
}

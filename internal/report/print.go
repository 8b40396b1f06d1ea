package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// maxCell is how many characters of a path or a verb a table shows: both may hold a label of 10 KB.
const maxCell = 80

// maxLine is how many characters of verbs a line of the table shows, unless a single verb is longer.
const maxLine = 60

// JSON is the report as the contract has it, indented, with a line's end.
func (r *Report) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a path is for reading
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// YAML is the same in YAML.
func (r *Report) YAML() ([]byte, error) { return yaml.Marshal(r) }

// Table is the report for a terminal. It shortens what is long, and is no contract.
func (r *Report) Table() []byte {
	var b bytes.Buffer
	if len(r.Changes) == 0 {
		b.WriteString("No field changes.\n")
	} else {
		w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
		row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // writes to memory
		row("PATH", "OPERATION", "NEEDS ANY OF", "COVERED BY")
		for i := range r.Changes {
			c := &r.Changes[i]
			lines := needs(c)
			row(cell(c.Path), c.Operation, lines[0], covered(c))
			for _, line := range lines[1:] {
				row("", "", line, "")
			}
		}
		_ = w.Flush()
	}
	b.WriteString("\n" + r.verdict() + "\n")
	for _, note := range r.Notes {
		b.WriteString("note: " + note + "\n")
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b.Bytes()) {
		out.Write(append(bytes.TrimRight(line, " \n"), '\n')) // a row below the first ends in an empty cell
	}
	return out.Bytes()
}

// needs lists the verbs from general to specific, as they are asked, on lines of at most maxLine
// characters, of which there is at least one.
func needs(c *Change) []string {
	candidates := c.candidates()
	if len(candidates) == 0 {
		return []string{"(no verb covers it)"}
	}
	var lines []string
	line := ""
	for i, v := range candidates {
		v = cell(v)
		if i < len(candidates)-1 {
			v += ","
		} else if c.Barrier >= 0 {
			v += " (barrier)"
		}
		switch {
		case line == "":
			line = v
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(v) <= maxLine:
			line += " " + v
		default:
			lines, line = append(lines, line), v
		}
	}
	return append(lines, line)
}

func covered(c *Change) string {
	if c.CoveredBy == "" {
		return "-"
	}
	return cell(c.CoveredBy)
}

func (r *Report) verdict() string {
	how := fmt.Sprintf("(mode %s, %d checks)", r.Mode, len(r.Checks))
	if len(r.Checks) == 1 {
		how = fmt.Sprintf("(mode %s, 1 check)", r.Mode)
	}
	if r.Allowed {
		return "allowed " + how
	}
	return "denied " + how + ": " + r.Message
}

// cell shortens a text to what a table can show.
func cell(text string) string {
	if runes := []rune(text); len(runes) > maxCell {
		return string(runes[:maxCell-1]) + "…"
	}
	return text
}

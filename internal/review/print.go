package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// maxCell is the maximum number of characters of a path or a verb in a table: both may contain a label of 10 KB.
const maxCell = 80

// maxLine is the maximum number of characters of verbs on a line of the table. A single longer verb is allowed.
const maxLine = 60

// JSON returns the report as indented JSON in the form of the contract, with a newline at the end.
func (r *Report) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // Escapes would make paths hard to read.
	e.SetIndent("", "  ")
	err := e.Encode(r)
	return b.Bytes(), err
}

// YAML returns the same as YAML.
func (r *Report) YAML() ([]byte, error) { return yaml.Marshal(r) }

// Table returns the report for a terminal. It shortens long texts. Its form is not a contract.
func (r *Report) Table() []byte {
	var b bytes.Buffer
	if len(r.Changes) == 0 {
		b.WriteString("No field changes.\n")
	} else {
		w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
		row := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // A write to memory cannot fail.
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
		out.Write(append(bytes.TrimRight(line, " \n"), '\n')) // a row after the first ends with an empty cell
	}
	return out.Bytes()
}

// needs returns the verbs from general to specific, in the order of the checks, on lines of at most maxLine characters. It returns
// at least one line.
func needs(c *Change) []string {
	candidates := c.Candidates()
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

// cell shortens a text to fit a table.
func cell(text string) string {
	if runes := []rune(text); len(runes) > maxCell {
		return string(runes[:maxCell-1]) + "…"
	}
	return text
}

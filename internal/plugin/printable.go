package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/internal/printable"
)

// Names in logs and objects come from other users, and may have characters that move the cursor of a terminal or reorder its text. The
// texts of this package reach a stream through say and warn, which escape them.

// printableLines is printable.Text for a text of several lines, such as a diff.
func printableLines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		content, ended := strings.CutSuffix(line, "\n")
		out.WriteString(printable.Text(content))
		if ended {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// argument is an argument of a format. What it prints is printable.
type argument struct{ value any }

// Format implements fmt.Formatter.
func (a argument) Format(s fmt.State, verb rune) {
	_, _ = s.Write([]byte(printable.Text(fmt.Sprintf(fmt.FormatString(s, verb), a.value))))
}

// printf formats a text of this program with arguments of others.
func printf(format string, args ...any) string {
	printable := make([]any, len(args))
	for i, value := range args {
		printable[i] = argument{value}
	}
	return fmt.Sprintf(format, printable...)
}

// encoded returns a value as JSON or YAML, in which every character is printable.
func encoded(value any, format string) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	text = printable.JSON(text)
	if format == outputYAML {
		return yamlOf(text)
	}
	return append(text, '\n'), nil
}

// yamlOf returns printable JSON as YAML in which every character is printable. YAML has no escapes in plain text, so JSON, which is YAML too,
// takes its place if it has to.
func yamlOf(text []byte) ([]byte, error) {
	out, err := yaml.JSONToYAML(text)
	if err == nil && !bytes.Equal(out, printable.JSON(out)) {
		return append(bytes.TrimSpace(text), '\n'), nil
	}
	return out, err
}

//go:build integration

package fields

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

// report counts the results of all fields, and writes them to a file on request.
func (r *run) report(t *testing.T) {
	t.Helper()
	var lines []string
	counts := map[string]int{}
	for _, try := range r.tries {
		line := fmt.Sprintf("%s\t%s\t", try.endpoint, try.path)
		switch {
		case try.method == "" && strings.HasPrefix(try.refused, "ignored"):
			counts["ignored"]++
			line += "IGNORED"
		case try.method == "":
			counts["refused"]++
			line += "REFUSED " + try.refused
		case try.held == nil:
			counts["unsent"]++
			line += "UNSENT"
		case try.held.ok():
			counts[fmt.Sprintf("%s with %d verbs", try.method, min(len(try.verbs), 2))]++
			line += "OK " + try.method + " " + strings.Join(try.verbs, " ")
		default:
			counts["FAILED"]++
			line += "FAILED " + try.method + " " + strings.Join(try.verbs, " ") + ": " + try.held.says() + " written: " + fmt.Sprint(try.written)
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	if *out != "" {
		must(t, os.WriteFile(*out, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	t.Logf("%d fields of %d endpoints were tried, %d exceptions are in docs/reference/fields.md: %v", len(lines), len(r.endpoints), len(table(t)), counts)
}

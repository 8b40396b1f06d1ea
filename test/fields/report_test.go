//go:build integration

package fields

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
)

// report writes what came of every field.
func (r *run) report(t *testing.T) {
	t.Helper()
	var lines, failed []string
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
			line += "FAILED " + try.method + " " + strings.Join(try.verbs, " ") + ": " + try.held.says() + " written: " + strings.Join(try.written, "; ")
			failed = append(failed, line)
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	_ = os.WriteFile("/tmp/fields-all.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	sort.Strings(failed)
	_ = os.WriteFile("/tmp/fields-failed.txt", []byte(strings.Join(failed, "\n")+"\n"), 0o644)
	t.Logf("%v of %d fields", counts, len(lines))
}

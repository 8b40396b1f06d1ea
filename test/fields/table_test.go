//go:build integration

package fields

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// row is a row of the table in docs/reference/fields.md: a field that the API server writes at an endpoint without a request to do so.
type row struct{ endpoint, field string }

var rowPattern = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (?:`[^`]+`)? ?\\| (.+) \\|$")

// table reads the reviewed table, with the reasons.
func table(t *testing.T) map[row]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/fields.md")
	must(t, err)
	_, rest, begins := strings.Cut(string(page), "<!-- fields -->")
	text, _, ends := strings.Cut(rest, "<!-- /fields -->")
	if !begins || !ends {
		t.Fatal("docs/reference/fields.md has no table between its marks")
	}
	out := map[row]string{}
	for _, m := range rowPattern.FindAllStringSubmatch(text, -1) {
		out[row{m[1], m[2]}] = m[3]
	}
	if lines := strings.Count(text, "\n| `"); lines != len(out) {
		t.Fatalf("docs/reference/fields.md has %d rows, %d of which can be read, each once", lines, len(out))
	}
	return out
}

// judge compares the observations with the table.
func (r *run) judge(t *testing.T) {
	t.Helper()
	known, seen, created := table(t), map[row]bool{}, map[string]bool{}
	for _, try := range r.tries {
		if try.method == "" || try.held == nil {
			continue
		}
		endpoint, _, _ := strings.Cut(try.endpoint.String(), " ")
		created[endpoint] = true
		explained := false
		for _, w := range try.written {
			at := row{endpoint, w.path}
			seen[at] = true
			if _, ok := known[at]; !ok && !try.held.ok() {
				t.Errorf("%s %s: the API server wrote %s by itself: record it (-run D13 -update) or, if it is no default, add to docs/reference/fields.md\n| `%s` | `%s` | `%s` | reason |", try.endpoint, try.path, w.path, endpoint, w.path, w.verb)
			}
			explained = true
		}
		if whole := (row{endpoint, "*"}); known[whole] != "" && !try.held.ok() {
			seen[whole], explained = true, true
		}
		if !try.held.ok() && !explained {
			t.Errorf("%s %s %s by %q: %s", try.method, try.endpoint, try.path, try.verbs, try.held.says())
		}
	}
	if !*all {
		return // A run over a part of the fields does not see every row.
	}
	for at, reason := range known {
		if created[at.endpoint] && !seen[at] {
			t.Errorf("docs/reference/fields.md: %q at %q (%s) is not seen any more: take the row out", at.field, at.endpoint, reason)
		}
	}
}

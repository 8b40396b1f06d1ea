//go:build controllers

package trial

import (
	"fmt"
	"strings"
)

// row is a row of the table: what became of a user in the second run.
type row struct {
	user    string
	updates int
	// verbs is the number of granular verbs that the user holds.
	verbs   int
	refused []string
	// outside is the refusal of a write outside its fields, keeps says that the user was left with update.
	outside string
	keeps   bool
}

// rows fails the test for a user whose write outside its fields is not refused.
func (r *Run) rows(proposals []*proposal) []row {
	r.T.Helper()
	// Before the writes outside, which are refused.
	refused, updates := r.refusals(), r.updates()
	var out []row
	for _, p := range proposals {
		one := row{user: p.user, updates: updates[p.user], verbs: p.verbs(r.T), refused: refused[p.user], keeps: len(p.objects) == 0}
		if !one.keeps {
			one.outside = r.outside(p)
			if one.outside == "" {
				r.T.Errorf("%s: no write outside its fields was refused", p.user)
			}
			r.T.Logf("%s: %s", p.user, one.outside)
		}
		out = append(out, one)
		delete(refused, p.user)
	}
	for user, what := range refused {
		r.T.Errorf("refused, without a proposal: %s: %q", user, what)
	}
	return out
}

// table returns the rows as a table of Markdown.
func table(rows []row) string {
	text := &strings.Builder{}
	fmt.Fprintln(text, "| user | updates | verbs | refused | a write outside its fields |\n|---|---|---|---|---|")
	total := row{}
	for i := range rows {
		one := &rows[i]
		answer := "refused"
		if one.keeps {
			answer = "keeps `update`"
		} else if one.outside == "" {
			answer = "not refused"
		}
		fmt.Fprintf(text, "| %s | %d | %d | %d | %s |\n", short(one.user), one.updates, one.verbs, len(one.refused), answer)
		total.updates, total.verbs, total.refused = total.updates+one.updates, total.verbs+one.verbs, append(total.refused, one.refused...)
	}
	fmt.Fprintf(text, "| %d users | %d | %d | %d | |\n", len(rows), total.updates, total.verbs, len(total.refused))
	return text.String()
}

// short returns the last part of the name of a user.
func short(user string) string { return user[strings.LastIndex(user, ":")+1:] }

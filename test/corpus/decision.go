package corpus

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/admission"
)

// Render writes the result of a review for the golden decisions.txt: the changes with their chains, "|" before the verbs that count if
// there is a barrier, the checks, and the decision.
func Render(result *admission.Result, err error) string {
	if err != nil {
		return fmt.Sprintf("  error %d: %v\n", admission.Code(err), err)
	}
	var b strings.Builder
	for i := range result.Requirements {
		r := &result.Requirements[i]
		fmt.Fprintf(&b, "  change %s %s:", r.Path, r.Operation)
		for j, v := range r.Chain {
			if j == r.Barrier {
				b.WriteString(" |")
			}
			b.WriteString(" " + strings.TrimPrefix(v.String(), "granular:"))
		}
		if r.Barrier == len(r.Chain) {
			b.WriteString(" |")
		}
		if i < len(result.CoveredBy) && result.CoveredBy[i] != "" {
			b.WriteString(" => " + result.CoveredBy[i])
		}
		b.WriteByte('\n')
	}
	if len(result.Checks) > 0 {
		b.WriteString("  checks")
		for _, check := range result.Checks {
			b.WriteString(" " + check.Verb + ":" + map[bool]string{true: "yes", false: "no"}[check.Allowed])
		}
		b.WriteByte('\n')
	}
	b.WriteString("  " + map[bool]string{true: "allowed", false: "denied"}[result.Allowed] + ", mode " + string(result.Mode) + "\n")
	if result.Message != "" {
		b.WriteString("  " + strconv.Quote(result.Message) + "\n")
	}
	return b.String()
}

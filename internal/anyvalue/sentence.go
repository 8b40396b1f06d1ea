package anyvalue

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// Sentence returns the answer as users read it: yes, or why not. on is the resource with its group.
func (a *Answer) Sentence(on string) string {
	switch {
	case a.Outcome == Yes:
		return "yes"
	case a.Outcome == Depends:
		return "depends - " + strings.Join(a.Why, "; ")
	case a.NotEnforced:
		return "no - " + a.missing()
	case len(a.Needs) == 0 && len(a.Entry) == 0:
		return strings.TrimSuffix("no - "+strings.Join(a.Why, "; "), " - ")
	}
	return "no - " + a.missing() + " on " + on
}

// Reason returns the sentence without the answer.
func (a *Answer) Reason(on string) string {
	_, reason, _ := strings.Cut(a.Sentence(on), " - ")
	return reason
}

// missing says which verbs are missing.
func (a *Answer) missing() string {
	granular := slices.DeleteFunc(slices.Clone(a.Needs), func(v string) bool { return slices.Contains(genericVerbs, v) })
	needs := strings.Join(a.Needs, " or ")
	switch {
	case a.NotEnforced:
		return "holds " + verbs.Marker + ", and the API server does not let the user in: fieldperm is not installed, or does not prove that it is enforced: see kubectl fieldperm version, or grant " + a.Entry[0]
	case len(a.Needs) == 0 && len(a.Entry) == 0:
		return strings.Join(a.Why, "; ")
	case len(a.Entry) == 0:
		return "needs " + needs
	case a.Barred:
		return "needs " + strings.Join(a.Entry, " or ") + ", and " + needs
	case len(a.Entry) == 1 || len(granular) == 0:
		return "needs " + strings.Join(a.Entry, " or ")
	}
	return "needs " + a.Entry[0] + ", or " + a.Entry[1] + " and one of " + strings.Join(granular, ", ")
}

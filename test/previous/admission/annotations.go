package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm"
	"github.com/fieldperm/fieldperm/test/previous/verbs"
)

// These are the audit annotations of every decision (P7). The API server adds the webhook's name as a prefix.
const (
	AnnotationMode   = "mode"
	AnnotationVerbs  = "verbs"
	AnnotationChecks = "checks"
	// AnnotationAuthorizers lists the authorizers with the verbs that each decided: "rbac=granular,granular:scale protector=!update",
	// with "!" before a denied verb. Verbs on which no authorizer had an opinion are left out. If no verb remains, the annotation is left
	// out.
	AnnotationAuthorizers = "authorizers"
	// AnnotationSkipped lists the webhooks that were not asked about some verbs, because a match condition of theirs excludes the question:
	// "protector=update,granular opa=granular" (KEP-3221: webhook-skipped). If no webhook was skipped, the annotation is left out.
	AnnotationSkipped = "webhook-skipped"
	// AnnotationFields lists the most specific verb of each change, sorted and without duplicates: what a user without the generic
	// permission needs at least. It is "" if nothing changed, and for DELETE. A list that was cut ends with ",…+N" for N further verbs.
	AnnotationFields = "fields"
)

// Uncoverable stands in AnnotationFields for a change that no verb covers.
const Uncoverable = "none"

// maxAnnotation is the maximum length of such a list in bytes.
const maxAnnotation = 1024

func annotations(result *Result) map[string]string {
	out := make(map[string]string, 5)
	out[AnnotationMode] = string(result.Mode)
	out[AnnotationVerbs] = coveringVerbs(result)
	out[AnnotationChecks] = strconv.Itoa(len(result.Checks))
	var few [8]string
	out[AnnotationFields] = joined(specificVerbs(few[:0], result.Requirements))
	if authorizers := decidingAuthorizers(result.Checks); authorizers != "" {
		out[AnnotationAuthorizers] = authorizers
	}
	if skipped := skippedWebhooks(result.Checks); skipped != "" {
		out[AnnotationSkipped] = skipped
	}
	return out
}

// coveringVerbs lists the verbs that cover the changes, sorted and without duplicates, and the generic verb that the user holds. It is ""
// if the request is denied.
func coveringVerbs(result *Result) string {
	if !result.Allowed {
		return ""
	}
	// There may be thousands of changes, but at most as many different verbs as were asked for.
	var few [8]string
	held := few[:0]
	for _, verb := range result.CoveredBy {
		if verb != "" {
			held = insert(held, verb)
		}
	}
	for _, check := range result.Checks {
		if check.Allowed && check.Verb != verbs.Marker && !strings.HasPrefix(check.Verb, verbs.Prefix) {
			held = insert(held, check.Verb)
		}
	}
	if len(held) == 1 && len(held[0])+len(more) <= maxAnnotation {
		return held[0]
	}
	var b bounded
	for i, verb := range held {
		if !b.add(separator(i, ","), verb) {
			break
		}
	}
	return b.String()
}

// specificVerbs appends the most specific verb of each change to an empty list, sorted and without duplicates. Uncoverable stands for the
// verb of a change that no verb covers.
func specificVerbs(out []string, requirements []fieldperm.Requirement) []string {
	last := ""
	for i := range requirements {
		verb := Uncoverable
		if candidates := requirements[i].Candidates(); len(candidates) > 0 {
			verb = candidates[len(candidates)-1].String()
		}
		// Neighbours often have the same verb.
		if verb != last {
			out, last = append(out, verb), verb
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// joined returns the verbs, separated by commas. If they do not fit into an annotation, the text ends with the number of verbs that are
// left out.
func joined(verbs []string) string {
	n := len(verbs) - 1
	for _, verb := range verbs {
		n += len(verb)
	}
	if n <= maxAnnotation {
		return strings.Join(verbs, ",")
	}
	const count = len(more) + len("+") + len("1000000000")
	n, fit := 0, 0
	for n+len(verbs[fit])+count <= maxAnnotation {
		n += len(verbs[fit]) + len(",")
		fit++
	}
	if fit == 0 {
		return fmt.Sprintf("…+%d", len(verbs))
	}
	return fmt.Sprintf("%s%s+%d", strings.Join(verbs[:fit], ","), more, len(verbs)-fit)
}

// insert adds a verb to a sorted list, unless the list already has it.
func insert(sorted []string, verb string) []string {
	i, found := slices.BinarySearch(sorted, verb)
	if found {
		return sorted
	}
	return slices.Insert(sorted, i, verb)
}

// decidingAuthorizers lists the authorizers in the order in which they first decided. Names and verbs contain no character of this
// syntax.
func decidingAuthorizers(checks []fieldperm.Check) string {
	var few [4]string
	names := few[:0]
	var b bounded
	for i, first := range checks {
		if first.By == "" || slices.Contains(names, first.By) {
			continue
		}
		names = append(names, first.By)
		for j, check := range checks[i:] {
			if check.By != first.By {
				continue
			}
			denied := ""
			if !check.Allowed {
				denied = "!"
			}
			var fits bool
			if j == 0 {
				fits = b.add(separator(len(names)-1, " "), first.By, "=", denied, check.Verb)
			} else {
				fits = b.add(",", denied, check.Verb)
			}
			if !fits {
				return b.String()
			}
		}
	}
	return b.String()
}

// skippedWebhooks lists the webhooks in the order in which they were first skipped, each with the verbs.
func skippedWebhooks(checks []fieldperm.Check) string {
	var names []string
	for _, check := range checks {
		for name := range strings.SplitSeq(check.Skipped, ",") {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var b bounded
	for i, name := range names {
		var skipped []string
		for _, check := range checks {
			if slices.Contains(strings.Split(check.Skipped, ","), name) {
				skipped = append(skipped, check.Verb)
			}
		}
		for j, verb := range skipped {
			fits := j == 0 && b.add(separator(i, " "), name, "=", verb) || j > 0 && b.add(",", verb)
			if !fits {
				return b.String()
			}
		}
	}
	return b.String()
}

// separator returns text for every item except the first.
func separator(i int, text string) string {
	if i == 0 {
		return ""
	}
	return text
}

// more is the end of a list that was shortened.
const more = ",…"

// bounded is a list of at most maxAnnotation bytes. It ends with more if it was cut.
type bounded struct {
	text [maxAnnotation]byte
	n    int
}

// add appends the parts and reports whether there was room for all of them.
func (b *bounded) add(parts ...string) bool {
	n := len(more)
	for _, part := range parts {
		n += len(part)
	}
	if b.n+n > maxAnnotation {
		b.n += copy(b.text[b.n:], more)
		return false
	}
	for _, part := range parts {
		b.n += copy(b.text[b.n:], part)
	}
	return true
}

func (b *bounded) String() string { return string(b.text[:b.n]) }

package admission

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/verbs"
)

// The audit annotations of every decision (P7). The API server puts the webhook's name before them.
const (
	AnnotationMode   = "mode"
	AnnotationVerbs  = "verbs"
	AnnotationChecks = "checks"
	// AnnotationAuthorizers says which authorizer decided on which verbs: "rbac=granular,granular:scale
	// protector=!update", with "!" for what it denied. Verbs on which none had an opinion are left out,
	// and without any other so is the annotation.
	AnnotationAuthorizers = "authorizers"
)

// maxAnnotation bounds the list of verbs in an audit annotation, in bytes.
const maxAnnotation = 1024

func annotations(result *Result) map[string]string {
	out := make(map[string]string, 4)
	out[AnnotationMode] = string(result.Mode)
	out[AnnotationVerbs] = coveringVerbs(result)
	out[AnnotationChecks] = strconv.Itoa(len(result.Checks))
	if authorizers := decidingAuthorizers(result.Checks); authorizers != "" {
		out[AnnotationAuthorizers] = authorizers
	}
	return out
}

// coveringVerbs lists the verbs that covered the change, sorted, each once, and the generic verb
// that was found held; "" if the request is denied.
func coveringVerbs(result *Result) string {
	if !result.Allowed {
		return ""
	}
	// Changes may be thousands, the verbs that cover them are at most as many as were asked.
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

// insert adds to what is sorted, unless it is there.
func insert(sorted []string, verb string) []string {
	i, found := slices.BinarySearch(sorted, verb)
	if found {
		return sorted
	}
	return slices.Insert(sorted, i, verb)
}

// decidingAuthorizers lists the authorizers in the order in which they first decided. No character of
// the syntax can be in a name or in a verb.
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

// separator stands before all but the first.
func separator(i int, text string) string {
	if i == 0 {
		return ""
	}
	return text
}

// more ends a list that had no room for all.
const more = ",…"

// bounded is a list of at most maxAnnotation bytes, which says so if there is more.
type bounded struct {
	text [maxAnnotation]byte
	n    int
}

// add reports whether there was room for all parts.
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

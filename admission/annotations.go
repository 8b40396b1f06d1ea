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
	out := map[string]string{
		AnnotationMode:   string(result.Mode),
		AnnotationVerbs:  coveringVerbs(result),
		AnnotationChecks: strconv.Itoa(len(result.Checks)),
	}
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
	var held []string
	for _, verb := range result.CoveredBy {
		if verb != "" {
			held = append(held, verb)
		}
	}
	for _, check := range result.Checks {
		if check.Allowed && check.Verb != verbs.Marker && !strings.HasPrefix(check.Verb, verbs.Prefix) {
			held = append(held, check.Verb)
		}
	}
	slices.Sort(held)
	var b bounded
	for i, verb := range slices.Compact(held) {
		if !b.add(separator(i), verb) {
			break
		}
	}
	return b.String()
}

// decidingAuthorizers lists the authorizers in the order in which they first decided. No character of
// the syntax can be in a name or in a verb.
func decidingAuthorizers(checks []fieldperm.Check) string {
	var names []string
	decided := map[string][]string{}
	for _, check := range checks {
		if check.By == "" {
			continue
		}
		if _, known := decided[check.By]; !known {
			names = append(names, check.By)
		}
		verb := check.Verb
		if !check.Allowed {
			verb = "!" + verb
		}
		decided[check.By] = append(decided[check.By], verb)
	}
	var b bounded
	for i, name := range names {
		between := ""
		if i > 0 {
			between = " "
		}
		for j, verb := range decided[name] {
			if j == 0 {
				between += name + "="
			} else {
				between = ","
			}
			if !b.add(between, verb) {
				return b.String()
			}
		}
	}
	return b.String()
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// bounded is a list of at most maxAnnotation bytes, which says so if there is more.
type bounded struct{ strings.Builder }

// add reports whether there was room.
func (b *bounded) add(between, verb string) bool {
	const more = ",…"
	if b.Len()+len(between)+len(verb)+len(more) > maxAnnotation {
		b.WriteString(more)
		return false
	}
	b.WriteString(between)
	b.WriteString(verb)
	return true
}

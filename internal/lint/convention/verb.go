package convention

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Use is one use of a verb: a schema gives it to a field.
type Use struct {
	// Verb is the name, without "granular:".
	Verb string
	Path fieldpath.Pattern
	// Group and Kind are those of the object. Group is "" if it is not known, as for a type of Go that many kinds have.
	Group, Kind string
	// Own means that the schema belongs to the author of the kind, and not to an administrator who adds to it.
	Own bool
}

// Problem is what a convention says about a use.
type Problem struct {
	Rule  string
	Level finding.Level
	// Message says what is wrong, and Cure what to do.
	Message, Cure string
	// Instead is the verb to write in place of this one, if there is only one fix.
	Instead string
}

// Checker checks uses of verbs. The zero Checker has an empty registry.
type Checker struct{ Registry Registry }

// Verb returns the problems of one use, by the order of Rules. A name that does not follow the grammar has no other problem, and a registered
// verb has none: its name was chosen before.
func (c *Checker) Verb(u Use) []Problem {
	if err := verbs.ValidateFieldVerb(u.Verb); err != nil {
		return []Problem{misspelt(u.Verb, err)}
	}
	if c.Registry.Has(u.Verb) {
		return nil
	}
	domain, local, qualified := strings.Cut(u.Verb, "/")
	if !qualified {
		domain, local = "", u.Verb
	}
	out := slices.Concat(noun(u.Verb, local), ancestors(u, local))
	if !qualified {
		return append(out, c.notRegistered(u))
	}
	return slices.Concat(out, domains(u, domain, local), c.repeats(u.Verb, local))
}

func misspelt(verb string, err error) Problem {
	message, cure, found := strings.Cut(err.Error(), ": use ")
	if !found {
		return Problem{Rule: VerbSpelling, Level: finding.Error, Message: err.Error(), Cure: "correct the verb"}
	}
	p := Problem{Rule: VerbSpelling, Level: finding.Error, Message: message, Cure: "use " + cure}
	if instead := verbs.SuggestName(verb); instead != verb && verbs.ValidateName(instead) == nil && sameLetters(strings.TrimPrefix(verb, verbs.Prefix), instead) {
		p.Instead = instead
	}
	return p
}

// sameLetters reports whether two names differ in case, hyphens and underscores only. What a name with other characters is meant to be is not
// known.
func sameLetters(a, b string) bool {
	plain := strings.NewReplacer("-", "", "_", "")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}

// noun finds names that are actions or adjectives.
func noun(verb, local string) []Problem {
	all := words(local)
	problem := func(is, cure string) []Problem {
		return []Problem{{Rule: VerbNotANoun, Level: finding.Warning, Message: fmt.Sprintf("verb %q %s", verb, is), Cure: cure}}
	}
	switch first := all[0]; {
	case len(all) == 1 && actions[first]:
		return problem("is an action", "name what is written, with a noun")
	case len(all) > 1 && prefixes[first]:
		return problem(fmt.Sprintf("begins with the action %q", first), fmt.Sprintf("name what is written, such as %q", strings.TrimSuffix(verb, local)+camel(all[1:])))
	}
	if last := all[len(all)-1]; adjectives[last] {
		return problem(fmt.Sprintf("ends in the adjective %q", last), "name the concept, with a noun: suspension, not suspended")
	}
	return nil
}

// ancestors finds names that repeat the kind or fields above.
func ancestors(u Use, local string) []Problem {
	var steps []string
	if u.Kind != "" {
		steps = append(steps, u.Kind)
	}
	for _, e := range u.Path {
		if !e.Any {
			steps = append(steps, e.Name)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	if isPathOf(strings.ToLower(local), steps) {
		return []Problem{{
			Rule: VerbNamesPath, Level: finding.Warning, Message: fmt.Sprintf("verb %q is the path of its field %q", u.Verb, u.Path),
			Cure: "name the concept, so that the verb can be used under another parent",
		}}
	}
	all := words(local)
	// The field of an item is the last step; the steps before it are above.
	above := steps
	if n := len(u.Path); n > 0 && !u.Path[n-1].Any {
		above = steps[:len(steps)-1]
	}
	for i, step := range above {
		if first := words(step); startsWith(all, first) && len(first) < len(all) {
			what := "field"
			if i == 0 && u.Kind != "" {
				what = "kind"
			}
			return []Problem{{
				Rule: VerbRepeats, Level: finding.Warning, Message: fmt.Sprintf("verb %q repeats the %s %q above its field", u.Verb, what, step),
				Cure: fmt.Sprintf("leave it out, as in %q", strings.TrimSuffix(u.Verb, local)+camel(all[len(first):])),
			}}
		}
	}
	return nil
}

// isPathOf reports whether a name in lower case is made of two or more of the steps in their order, the last one included.
func isPathOf(name string, steps []string) bool {
	rest, ok := strings.CutSuffix(name, strings.ToLower(steps[len(steps)-1]))
	return ok && rest != "" && isMadeOf(rest, steps[:len(steps)-1])
}

func isMadeOf(name string, steps []string) bool {
	for i := range steps {
		rest, ok := strings.CutSuffix(name, strings.ToLower(steps[len(steps)-1-i]))
		if ok && (rest == "" || isMadeOf(rest, steps[:len(steps)-1-i])) {
			return true
		}
	}
	return false
}

func (c *Checker) notRegistered(u Use) Problem {
	domain := "example.com"
	if u.Own && u.Group != "" {
		domain = u.Group
	}
	cure := fmt.Sprintf("give it a domain that you own, such as %q, or list it in a registry", domain+"/"+u.Verb)
	if near := c.Registry.Nearest(u.Verb); near != "" {
		cure = fmt.Sprintf("use the well-known %q if that is meant, or %s", near, cure)
	}
	return Problem{Rule: VerbNotRegistered, Level: finding.Warning, Message: fmt.Sprintf("verb %q has no domain and is no well-known verb", u.Verb), Cure: cure}
}

// reserved are the domains in which only Kubernetes and fieldperm give names.
var reserved = []string{"kubernetes.io", "k8s.io", "fieldperm.dev"}

// isBelow reports whether a domain is another one, or below it.
func isBelow(domain, other string) bool {
	return domain == other || strings.HasSuffix(domain, "."+other)
}

func domains(u Use, domain, local string) []Problem {
	// The owner of an API group is the owner of its domain, whichever that is.
	own := u.Own && u.Group != "" && (isBelow(u.Group, domain) || isBelow(domain, u.Group))
	mine := "example.com/" + local
	if u.Own && u.Group != "" {
		mine = u.Group + "/" + local
	}
	switch i := slices.IndexFunc(reserved, func(r string) bool { return isBelow(domain, r) }); {
	case i >= 0 && !own:
		return []Problem{{
			Rule: ReservedDomain, Level: finding.Error, Message: fmt.Sprintf("verb %q: domain %q is reserved", u.Verb, domain),
			Cure: fmt.Sprintf("use a domain that you own, such as %q", mine),
		}}
	case u.Own && u.Group != "" && !own:
		return []Problem{{
			Rule: DomainNotOfGroup, Level: finding.Warning, Message: fmt.Sprintf("verb %q: domain %q is not of the API group %q", u.Verb, domain, u.Group),
			Cure: fmt.Sprintf("use %q, or list the verb in a registry if it is shared", mine),
		}}
	}
	return nil
}

// repeats finds a verb with a domain that is a well-known verb without one.
func (c *Checker) repeats(verb, local string) []Problem {
	for _, known := range c.Registry.All() {
		if known.Verb == local || !strings.Contains(known.Verb, "/") && near(local, known.Verb) {
			return []Problem{nearly(verb, known.Verb, "the well-known ")}
		}
	}
	return nil
}

func nearly(verb, other, article string) Problem {
	return Problem{
		Rule: NearDuplicate, Level: finding.Note, Message: fmt.Sprintf("verb %q is nearly %s%q", verb, article, other),
		Cure: fmt.Sprintf("use %q if the concept is the same", other),
	}
}

// shortest is the length in bytes from which on one letter is a slip and no other word.
const shortest = 5

// near reports whether two names differ in one letter. Singular and plural are not near: a map and its values have such verbs.
func near(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return singular(a) != singular(b) && min(len(a), len(b)) >= shortest && spelling.Edits(a, b) <= 1
}

// Near returns the problem of two verbs of the same files that differ in one letter. It is false if they do not.
func Near(verb, other string) (Problem, bool) {
	if !near(verb, other) || strings.Contains(verb, "/") != strings.Contains(other, "/") {
		return Problem{}, false
	}
	return nearly(verb, other, ""), true
}

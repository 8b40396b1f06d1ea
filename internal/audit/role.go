package audit

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/spelling"
	"github.com/fieldperm/fieldperm/verbs"
)

// about says what a verb of a rule is to fieldperm.
type about int

const (
	foreign about = iota
	marker
	granular
	invalid
	misspelt
)

// maxMisspelt is how many characters a misspelt marker may differ in: two neighbours in the wrong order are two.
const maxMisspelt = 2

// classify says what a verb is, and returns its value if it is granular.
func classify(text string) (verbs.Verb, about) {
	switch {
	case text == verbs.Marker:
		return verbs.MarkerVerb(), marker
	case strings.HasPrefix(text, verbs.Prefix):
		v, err := verbs.Parse(text)
		if err != nil {
			return verbs.Verb{}, invalid
		}
		return v, granular
	}
	if head, _, _ := strings.Cut(text, ":"); spelling.Edits(strings.ToLower(strings.TrimSpace(head)), verbs.Marker) <= maxMisspelt {
		return verbs.Verb{}, misspelt
	}
	return verbs.Verb{}, foreign
}

// concerns reports whether a verb is one of fieldperm, or meant to be one.
func concerns(text string) bool {
	_, is := classify(text)
	return is != foreign
}

// reviewer applies the rules about one role.
type reviewer struct {
	known *Known
	// incomplete means that there may be kinds that are not known: some could not be read, or files are audited.
	incomplete, files bool
	report            func(Finding)
	role              *Role
}

// review applies them to each rule of a role.
func (c *reviewer) review(role *Role) {
	c.role = role
	for i := range role.Rules {
		rule := &role.Rules[i]
		c.createNames(i, rule)
		if slices.Contains(rule.Verbs, rbacv1.VerbAll) {
			continue // The other verbs of the rule add nothing.
		}
		if slices.ContainsFunc(rule.Verbs, concerns) {
			c.granularRule(i, rule)
		}
	}
}

// find reports a finding at a place of the role.
func (c *reviewer) find(rule string, level Level, path, about, message, cure string) {
	c.report(c.role.at(Finding{Rule: rule, Level: level, Object: c.role.Ref, Path: path, Message: message, Cure: cure, About: about}))
}

func verbPath(rule, verb int) string { return fmt.Sprintf("rules[%d].verbs[%d]", rule, verb) }

// createNames is the rule create-with-resource-names. A subresource is created of an object that exists, so that its name is known. A PUT or a
// server-side apply of an object that does not exist is authorized for create with the name. It takes update or patch as well, so a rule with
// one of these is meant for it.
func (c *reviewer) createNames(i int, rule *rbacv1.PolicyRule) {
	at := slices.Index(rule.Verbs, "create")
	isObject := func(resource string) bool { return !strings.Contains(resource, "/") }
	writes := slices.Contains(rule.Verbs, "patch") || slices.Contains(rule.Verbs, "update")
	if at < 0 || writes || len(rule.ResourceNames) == 0 || !slices.ContainsFunc(rule.Resources, isObject) {
		return
	}
	names := slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return !isObject(r) })
	c.find(createNames, Warning, verbPath(i, at), strings.Join(rule.Resources, ","),
		fmt.Sprintf("\"create\" on %s does not match an ordinary creation, whose name is not known when it is authorized, because the rule has resourceNames", strings.Join(names, ", ")),
		"grant create in a rule without resourceNames, or patch beside it if objects are created by server-side apply")
}

// granularRule checks a rule that names verbs of fieldperm.
func (c *reviewer) granularRule(i int, rule *rbacv1.PolicyRule) {
	usable := c.resources(i, rule)
	for j, text := range rule.Verbs {
		v, is := classify(text)
		path := verbPath(i, j)
		switch is {
		case misspelt:
			c.find(misspeltMarker, Error, path, text, fmt.Sprintf("verb %q is almost %q, and has no effect", text, verbs.Marker), fmt.Sprintf("write %q", c.respelt(text)))
		case invalid:
			_, err := verbs.Parse(text)
			c.find(invalidVerb, Error, path, text, fmt.Sprintf("%v", withoutCure(err)), c.validCure(text, err))
		case granular:
			if v == verbs.All() {
				if slices.Contains(rule.Verbs, "update") || slices.Contains(rule.Verbs, "patch") {
					continue // These cover the fields already.
				}
				c.find(allFields, Note, path, text, `"granular:*" covers every field without a barrier, as update does`, "grant the verbs of the fields that are needed")
				continue
			}
			c.verb(path, v, rule, usable)
			c.scale(path, v, usable)
		case marker:
			c.marker(i, rule)
		case foreign:
		}
	}
}

// respelt returns the verb that a misspelt marker was probably meant to be.
func (c *reviewer) respelt(text string) string {
	_, name, found := strings.Cut(strings.TrimSpace(text), ":")
	if !found {
		return verbs.Marker
	}
	if v := verbs.Prefix + name; name != "" {
		if _, err := verbs.Parse(v); err == nil {
			return v
		}
		if near := c.known.nearestVerb(name); near != "" {
			return near
		}
	}
	return verbs.Marker
}

// withoutCure returns an error without the cure at its end.
func withoutCure(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i > 0 {
		return text[:i]
	}
	return text
}

// validCure returns the verb to write in place of an invalid one, or the cure of the grammar.
func (c *reviewer) validCure(text string, err error) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(text, verbs.Prefix), "(")
	if near := c.known.nearestVerb(strings.TrimRight(name, "*.:/ ")); near != "" && !strings.Contains(text, "(") {
		return fmt.Sprintf("write %q", near)
	}
	return cureOf(err)
}

// cureOf returns the cure at the end of an error.
func cureOf(err error) string {
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+len(": "):]
}

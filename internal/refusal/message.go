package refusal

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// denial reads a message of fieldperm.Denial.Message after the user.
func (c *cursor) denial(r *Refusal) bool {
	r.Origin = FromFieldperm
	switch {
	case c.word("may not change "):
		c.change(r)
		return true
	case c.word("may not "):
		verb := c.while(isAlphanumeric)
		if verb == "connect" && c.word(" to") {
			verb = "connect to"
		}
		if verb == "" || !c.word(" it") {
			return false
		}
		r.Verb = verb
		if verb == "create" && slices.ContainsFunc(ofExistence, func(text string) bool { return strings.HasPrefix(c.rest, text) }) {
			r.Field, r.Change = ".", "existence"
			if r.Unclear = !c.needs(r); !r.Unclear {
				c.tail(r)
			}
			return true
		}
		if c.word(": needs ") {
			r.Unclear = !c.generic(r)
		}
		if !r.Unclear {
			c.tail(r)
		}
		return true
	}
	return false
}

// ofExistence begin what follows "may not create it" if a verb of fields may be enough for the existence of the object, and not the generic one alone.
var ofExistence = []string{": needs any one of ", ": needs " + verbs.Prefix, ": the request needs more than ", ": no verb covers it"}

// generic reads "update or patch, or granular with the granular verbs of every changed field".
func (c *cursor) generic(r *Refusal) bool {
	for {
		verb := c.while(isAlphanumeric)
		if verb == "" {
			return false
		}
		r.Needs = append(r.Needs, verb)
		if !c.word(" or ") {
			break
		}
	}
	r.OrGranular = c.word(", or granular with the granular verbs of every changed field") ||
		c.word(", or granular with granular:creation and the granular verbs of every field")
	return true
}

// change reads the field, what of it changes, and the verbs.
func (c *cursor) change(r *Refusal) {
	var ok bool
	if r.Field, r.FieldCut, ok = c.path(); !ok {
		r.Unclear = true
		return
	}
	c.word(" (the object as a whole)")
	switch {
	case c.word(" (the order of its items)"):
		r.Change = "order"
	case c.word(" (its field managers)"):
		r.Change = "owners"
	case c.word(" (its field managers: "):
		r.Change = "owners"
		if r.Entry, ok = c.entry(); !ok {
			r.Unclear = true
			return
		}
	}
	if r.Unclear = !c.needs(r); !r.Unclear {
		c.tail(r)
	}
}

// entry reads "manager" in apps/v1). The version is a text of the author of the object, and is not quoted.
func (c *cursor) entry() (string, bool) {
	before := c.rest
	if _, ok := c.quoted(); !ok || !c.word(" in ") {
		return "", false
	}
	c.while(isResource)
	text := before[:len(before)-len(c.rest)]
	return text, len(text) <= maxName && c.word(")")
}

// needs reads the verbs that would cover the change.
func (c *cursor) needs(r *Refusal) bool {
	switch {
	case c.word(": the request needs more than "):
		var ok bool
		if r.MaxChecks, ok = c.number(); !ok || !c.word(" permission checks") {
			return false
		}
		if !c.word(": a grant of ") {
			return true
		}
		return c.verb(r) && c.word(" would do, or change fewer fields at once")
	case c.word(": no verb covers it"):
		r.NoVerb = true
		return true
	case c.word(": needs any one of "):
		for c.verb(r) {
			if !c.word(", ") {
				return true
			}
		}
		return false
	case c.word(": needs "):
		return c.verb(r)
	}
	return false
}

// verb reads a verb that the grammar of verbs has.
func (c *cursor) verb(r *Refusal) bool {
	text := c.while(isVerb)
	if _, err := verbs.Parse(text); err != nil {
		return false
	}
	r.Needs = append(r.Needs, text)
	return true
}

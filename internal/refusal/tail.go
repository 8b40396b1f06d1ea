package refusal

import (
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

const unattributed = "no field manager owns this change: a default of the API server, a mutating webhook or a policy made it, not the request"

// tail reads the parts of a message after the verbs, each after "; ". The first may be advice, which is a text of fieldperm.
func (c *cursor) tail(r *Refusal) {
	for c.word("; ") {
		if c.part(r) {
			continue
		}
		if r.Advice != "" || len(r.Unmet) > 0 || r.Deny != nil {
			r.Unclear = true // Advice comes first, and once.
			return
		}
		r.Advice = c.advice()
	}
	before := *c
	if c.word(" (") {
		if n, ok := c.number(); ok && (c.word(" more change was not looked at)") || c.word(" more changes were not looked at)")) {
			r.MoreChanges = n
			return
		}
	}
	*c = before
}

// part reads one part that is no advice.
func (c *cursor) part(r *Refusal) bool {
	before := *c
	if name, ok := c.quotedAfter("the condition of policy "); ok && c.word(" is not met") {
		r.Unmet = append(r.Unmet, Unmet{Name: name, Description: c.explained()})
		return true
	}
	*c = before
	if name, ok := c.quotedAfter("the condition "); ok {
		if by, ok := c.quotedAfter(" of authorizer "); ok && c.word(" is not met") {
			r.Unmet = append(r.Unmet, Unmet{Name: name, Authorizer: by, Description: c.explained()})
			return true
		}
	}
	*c = before
	if by, ok := c.quotedAfter("authorizer "); ok && c.word(" denies ") {
		if verb := c.denied(); verb != "" && r.Deny == nil {
			r.Deny = &Deny{Authorizer: by, Verb: verb, Reason: c.explained()}
			return true
		}
	}
	*c = before
	if n, ok := c.number(); ok && (c.word(" more condition is not met") || c.word(" more conditions are not met")) {
		r.MoreUnmet = n
		return true
	}
	*c = before
	if c.word(unattributed) {
		r.Unattributed = true
		return true
	}
	return false
}

// explained reads a reason in quotes.
func (c *cursor) explained() string {
	text, _ := c.quotedAfter(": ")
	return text
}

// denied reads the verb that an authorizer denies. The verb is not quoted: it is one of the grammar, or one of requests, or its beginning.
func (c *cursor) denied() string {
	text := c.while(isVerb)
	if strings.HasPrefix(c.rest, ` "`) && strings.HasSuffix(text, ":") {
		text, c.rest = text[:len(text)-1], ":"+c.rest
	}
	if c.word(cutMark) {
		return text + cutMark
	}
	if _, err := verbs.Parse(text); err != nil && strings.ContainsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return ""
	}
	return text
}

// advice reads a text until the next part that is no advice, or the end.
func (c *cursor) advice() string {
	text := c.rest
	for at := 0; ; {
		next := strings.Index(text[at:], "; ")
		if next < 0 {
			break
		}
		at += next
		if (&cursor{text[at+len("; "):]}).part(&Refusal{}) {
			c.rest = text[at:]
			return text[:at]
		}
		at += len("; ")
	}
	c.rest = ""
	if at := strings.LastIndex(text, " ("); at >= 0 {
		counted := cursor{text[at:]}
		probe := Refusal{}
		if counted.tail(&probe); probe.MoreChanges > 0 && counted.rest == "" {
			text, c.rest = text[:at], text[at:]
		}
	}
	return text
}

package refusal

import (
	"slices"
	"strings"
)

// Bounds of a text, so that a hostile one takes no time.
const (
	maxText    = 32 << 20
	maxResults = 100
)

// Parse returns the refusals in a text of several lines, in the order of the text: those of fieldperm, kube-apiserver's own of a missing
// permission, and failures of fieldperm. A message may stand after other words, and in quotes as in a log. Of more than maxResults these are the
// last.
func Parse(text string) []Refusal {
	if len(text) > maxText {
		text = text[:maxText]
	}
	var out []Refusal
	for line := range strings.Lines(text) {
		for _, r := range parseLine(strings.TrimRight(line, "\r\n"), true) {
			if len(out) == maxResults {
				out = slices.Delete(out, 0, 1)
			}
			out = append(out, r)
		}
	}
	return out
}

// parseLine reads the messages of a line. A message begins at the beginning of the line, or after ": ". What is in quotes is skipped,
// unless it is the value of a log, err="…". A patch that kubectl prints has texts of others in quotes.
func parseLine(line string, logs bool) []Refusal {
	var out []Refusal
	c := cursor{line}
	webhook, starts := "", true
	for c.rest != "" {
		if starts {
			if r, ok := c.message(webhook); ok {
				return append(out, r) // The rest of the line is a part of it.
			}
		}
		starts = false
		if c.ofOthers() {
			return out
		}
		if name, ok := c.quotedAfter(`admission webhook `); ok {
			if webhook = ""; c.word(" denied the request: ") {
				webhook, starts = name, true
			}
			continue
		}
		key := line[:len(line)-len(c.rest)]
		if quoted, ok := c.quoted(); ok {
			if logs && isError(key) {
				out = append(out, parseLine(quoted, false)...)
			}
			continue
		}
		starts = strings.HasPrefix(c.rest, ": ")
		if starts {
			c.rest = c.rest[2:]
		} else {
			c.rest = c.rest[1:]
		}
	}
	return out
}

// isError reports whether a line until a quoted value ends with the key of an error. Other values of a log, such as names, are texts of others.
func isError(line string) bool {
	for _, key := range []string{"err=", "error="} {
		if before, ok := strings.CutSuffix(line, key); ok && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\t")) {
			return true
		}
	}
	return false
}

// ofOthers reports whether the rest of a line is a text of another webhook, or of a policy. It may be like a message of fieldperm.
func (c *cursor) ofOthers() bool {
	after := *c
	for _, begin := range []string{"admission webhook ", "failed calling webhook "} {
		if name, ok := after.quotedAfter(begin); ok {
			return !ours(name)
		}
	}
	return after.word("ValidatingAdmissionPolicy '")
}

// parseAnswer reads the message of an answer of kube-apiserver, which is one line and has nothing before the message but the name of the
// webhook. Other texts may have a part that looks like one, such as those of other webhooks.
func parseAnswer(text string) (Refusal, bool) {
	c := cursor{text}
	webhook := ""
	c.word("Internal error occurred: ")
	if name, ok := c.quotedAfter("admission webhook "); ok {
		if !ours(name) || !c.word(" denied the request: ") {
			return Refusal{}, false
		}
		webhook = name
	}
	return c.message(webhook)
}

// message reads one message. webhook is the webhook that the text names before it.
func (c *cursor) message(webhook string) (Refusal, bool) {
	before := *c
	r := Refusal{Webhook: webhook}
	if c.forbidden(&r) {
		return r, true
	}
	*c = before
	if r := (Refusal{Webhook: webhook}); c.failure(&r) {
		return r, true
	}
	*c = before
	return Refusal{}, false
}

// forbidden reads RESOURCE "NAME" is forbidden: User "USER" …
func (c *cursor) forbidden(r *Refusal) bool {
	r.Resource = c.while(isResource)
	if r.Resource == "" {
		return false
	}
	if name, ok := c.quotedAfter(" "); ok {
		r.Name = name
	}
	var ok bool
	if r.User, ok = c.quotedAfter(" is forbidden: User "); !ok || !c.word(" ") {
		return false
	}
	if c.word("cannot ") {
		return c.unauthorized(r)
	}
	return c.denial(r)
}

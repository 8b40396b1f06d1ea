package refusal

import "strings"

// The bounds of a name in a message: fieldperm cuts a longer one after maxName bytes, or up to three before, so as not to split a character.
const (
	maxName = 256
	cutMark = "…"
)

// path reads a path as fieldpath.Path.String writes it. cut means that its end is not in the message: then what looks like the next part of
// the message may still be a key of an object that was cut in the middle.
func (c *cursor) path() (path string, cut, ok bool) {
	before := *c
	if c.steps() {
		// A key that was cut has no closing quote: it seems to end at a quote of a later part, and is longer than any path that is not cut.
		path = before.rest[:len(before.rest)-len(c.rest)]
		if len(path) <= maxName && !(strings.HasPrefix(c.rest, cutMark) && len(path) > maxName-4) {
			return path, false, true
		}
	}
	for end := min(maxName, len(before.rest)); end > maxName-4 && end > 0; end-- {
		if strings.HasPrefix(before.rest[end:], cutMark) {
			c.rest = before.rest[end+len(cutMark):]
			return before.rest[:end] + cutMark, true, true
		}
	}
	*c = before
	return "", false, false
}

// steps reads the steps of a path, or "." for the object itself.
func (c *cursor) steps() bool {
	count := 0
	for {
		switch {
		case strings.HasPrefix(c.rest, "["):
			if !c.bracket() {
				return false
			}
		case strings.HasPrefix(c.rest, "."):
			c.rest = c.rest[1:]
			if name := c.while(isField); name == "" {
				return count == 0 // The object itself.
			}
		default:
			return count > 0
		}
		count++
	}
}

// bracket reads ["key"], [0], [="value"] or [name="web",port=80].
func (c *cursor) bracket() bool {
	c.word("[")
	for {
		if strings.HasPrefix(c.rest, `"`) {
			if _, ok := c.quoted(); !ok {
				return false
			}
		} else {
			c.while(isField)
			if c.word("=") {
				if _, ok := c.quoted(); !ok && !c.word(cutMark) && c.while(isScalar) == "" {
					return false
				}
			}
		}
		if !c.word(",") {
			return c.word("]")
		}
	}
}

// isScalar accepts the bytes of numbers, true, false and null.
func isScalar(b byte) bool { return isAlphanumeric(b) || b == '.' || b == '-' || b == '+' }

package refusal

import (
	"strconv"
	"strings"
)

// cursor reads a text from its beginning. A method that does not find what it reads returns false and does not move.
type cursor struct{ rest string }

func (c *cursor) word(text string) bool {
	rest, ok := strings.CutPrefix(c.rest, text)
	if ok {
		c.rest = rest
	}
	return ok
}

// quoted reads a Go string in double quotes, which is how names of others are written.
func (c *cursor) quoted() (string, bool) {
	if !strings.HasPrefix(c.rest, `"`) {
		return "", false
	}
	prefix, err := strconv.QuotedPrefix(c.rest)
	if err != nil {
		return "", false
	}
	text, err := strconv.Unquote(prefix)
	if err != nil {
		return "", false
	}
	c.rest = c.rest[len(prefix):]
	return text, true
}

// quotedAfter reads a word and a quoted text.
func (c *cursor) quotedAfter(word string) (string, bool) {
	before := *c
	if c.word(word) {
		if text, ok := c.quoted(); ok {
			return text, true
		}
	}
	*c = before
	return "", false
}

// while reads the bytes that a function accepts.
func (c *cursor) while(accepts func(byte) bool) string {
	end := 0
	for end < len(c.rest) && accepts(c.rest[end]) {
		end++
	}
	text := c.rest[:end]
	c.rest = c.rest[end:]
	return text
}

// number reads a number without a sign.
func (c *cursor) number() (int, bool) {
	before := *c
	n, err := strconv.Atoi(c.while(isDigit))
	if err != nil {
		*c = before
	}
	return n, err == nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isAlphanumeric(b byte) bool {
	return isDigit(b) || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// isResource accepts the bytes of deployments.apps/scale.
func isResource(b byte) bool {
	return isAlphanumeric(b) || b == '.' || b == '-' || b == '/' || b == '*'
}

// isField accepts the bytes of the name of a field in a path. Names with others are possible, and make a message Unclear.
func isField(b byte) bool { return isAlphanumeric(b) || b == '_' || b == '-' || b == '$' }

// isVerb accepts the bytes of a verb with a parameter.
func isVerb(b byte) bool { return isAlphanumeric(b) || strings.IndexByte(".-_~:/@%*()", b) >= 0 }

package diff

import (
	"bytes"
	"crypto/rand"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Apart are two objects in which strings with bytes that are not UTF-8 equal no string of the other object.
type Apart struct {
	// Old and New are the texts, nil if an object has no such string.
	Old, New []byte
	// Planted means that the new object has more such bytes than the old one. Nothing can be compared with them, so that every later
	// write of the object would need the verb of the string: a user without granular:* must not lock out others.
	Planted bool
}

// SetApart returns the objects for the comparison. The API server writes the escape of U+FFFD for each byte that is not UTF-8, and U+FFFD
// itself for the character. A random text in the string, which no user can foresee, makes it unequal to every string of the other object.
func SetApart(old, new rawjson.Value) Apart {
	if !old.MayHoldReplacement() && !new.MayHoldReplacement() {
		return Apart{}
	}
	before, was := setApart(old)
	after, is := setApart(new)
	return Apart{Old: before, New: after, Planted: !old.IsAbsent() && is > was}
}

// setApart returns the text of an object with a random text in each such string, nil if there is none, and the number of such bytes.
func setApart(object rawjson.Value) (out []byte, n int) {
	text, from, last := object.Raw(), 0, 0
	apart := "<not UTF-8, " + rand.Text() + ">"
	for at := nextEscape(text, 0); at >= 0; at = nextEscape(text, last) {
		// One random text is enough for a string. The text of an object with many such bytes must not become many times as long.
		if n == 0 || hasQuote(text[last:at]) {
			out = append(append(out, text[from:at]...), apart...)
			from = at
		}
		last = at + len(escaped)
		n++
	}
	if n == 0 {
		return nil, 0
	}
	return append(out, text[from:]...), n
}

// hasQuote reports whether a text that begins inside a string has a quotation mark that ends or begins a string.
func hasQuote(text []byte) bool {
	for from := 0; ; {
		at := bytes.IndexByte(text[from:], '"')
		if at < 0 {
			return false
		}
		if at += from; !isQuoted(text, at) {
			return true
		}
		from = at + 1
	}
}

// escaped is the form in which encoding/json writes a byte that is not UTF-8.
var escaped = []byte(`\ufffd`)

// nextEscape returns the position of the next such byte, -1 if there is none.
func nextEscape(text []byte, from int) int {
	for {
		at := bytes.Index(text[from:], escaped)
		if at < 0 {
			return -1
		}
		if at += from; !isQuoted(text, at) {
			return at
		}
		from = at + len(escaped)
	}
}

// isQuoted reports whether the backslash at a position belongs to the escape of another backslash before it.
func isQuoted(text []byte, at int) bool {
	n := 0
	for at-n > 0 && text[at-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

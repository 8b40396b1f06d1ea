package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a text in which every character that is not printable is an escape of Go: a control character, a line break, an
// override of the direction of text, a byte that is no UTF-8.
func Text(text string) string {
	if !strings.ContainsFunc(text, unprintable) && utf8.ValidString(text) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if unprintable(r) || r == utf8.RuneError && size == 1 {
			quoted := strconv.Quote(text[:size])
			out = append(out, quoted[1:len(quoted)-1]...)
		} else {
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return string(out)
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// JSON escapes the characters of JSON that are not printable, such as overrides of the direction of text. They can be in its
// strings only. The value is the same.
func JSON(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		switch {
		case !Hidden(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// Hidden reports whether a character is not printable, and no line break of a text.
func Hidden(r rune) bool { return r != '\n' && unprintable(r) }

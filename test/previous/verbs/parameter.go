package verbs

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxParameterBytes is the maximum length of an encoded parameter in bytes.
const MaxParameterBytes = 1024

const upperHex = "0123456789ABCDEF"

// isPlain reports whether a byte is written unchanged in a parameter. Parentheses, percent signs, blanks and all bytes outside ASCII are
// encoded, so that a value can never end its parameter.
func isPlain(c byte) bool {
	switch c {
	case '.', '_', '~', ':', '/', '@', '-':
		return true
	}
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// encodedLength returns the length in bytes of the encoded value. It reports false if the value cannot be a parameter.
func encodedLength(value string) (int, bool) {
	if value == "" || len(value) > MaxParameterBytes || !utf8.ValidString(value) {
		return 0, false
	}
	n := len(value)
	for i := range len(value) {
		if !isPlain(value[i]) {
			n += 2
		}
	}
	return n, n <= MaxParameterBytes
}

// writeParameter writes the encoded value.
func writeParameter(b *strings.Builder, value string) {
	for i := range len(value) {
		if c := value[i]; isPlain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&0xF])
		}
	}
}

func decodeParameter(encoded string) (string, error) {
	if encoded == "" {
		return "", fmt.Errorf("the parameter is empty: leave the parentheses out or fill them")
	}
	if len(encoded) > MaxParameterBytes {
		return "", fmt.Errorf("the parameter has %d bytes: use at most %d", len(encoded), MaxParameterBytes)
	}
	b := make([]byte, 0, len(encoded))
	for i := 0; i < len(encoded); i++ {
		c := encoded[i]
		switch {
		case isPlain(c):
			b = append(b, c)
		case c == '%' && i+2 < len(encoded) && isHex(encoded[i+1]) && isHex(encoded[i+2]):
			b = append(b, unhex(encoded[i+1])<<4|unhex(encoded[i+2]))
			i += 2
		default:
			return "", fmt.Errorf("the parameter has a bare %q at byte %d: percent-encode it", c, i)
		}
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("the parameter is not UTF-8 once decoded: encode the UTF-8 of the value")
	}
	return string(b), nil
}

func isHex(c byte) bool { return strings.IndexByte(upperHex, c) >= 0 || c >= 'a' && c <= 'f' }

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

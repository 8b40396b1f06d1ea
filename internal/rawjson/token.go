package rawjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

func hasPrefix(data []byte, literal string) bool {
	return len(data) >= len(literal) && string(data[:len(literal)]) == literal
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special returns a word with the high bit set for each byte of x that is a quote, a backslash, a control character or not ASCII.
// The lowest set bit is exact. Above it a borrow may have set other bits.
func special(x uint64) uint64 {
	// Of all ASCII characters, exactly the quote and the control characters are less than 0x21 with the bit 0x02 flipped. A byte that is not
	// ASCII has its high bit set in any case, so it may confuse the subtractions.
	control, backslash := x^0x02*ones, x^'\\'*ones
	return ((control - 0x21*ones) | (backslash - ones) | x) & highs
}

// shortString reads a string of less than eight plain bytes and returns the offset after its closing quote. For any other string it
// returns the negated offset at which scanString must continue. It is small enough to be inlined: most names are short.
func shortString(data []byte, i int) int {
	if i+8 > len(data) {
		return -i
	}
	hit := special(binary.LittleEndian.Uint64(data[i:]))
	if hit == 0 {
		return -i - 8
	}
	if i += bits.TrailingZeros64(hit) / 8; data[i] == '"' {
		return i + 1
	}
	return -i
}

// scanString reads a string from the offset after its opening quote and returns the offset after the closing one.
func (d *Document) scanString(data []byte, i int) (int, bool) {
	for {
		for i+8 <= len(data) {
			hit := special(binary.LittleEndian.Uint64(data[i:]))
			if hit == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(hit) / 8
			if data[i] == '"' {
				return i + 1, true
			}
			if data[i] != '\\' || i+1 == len(data) || !isShortEscape[data[i+1]] {
				break
			}
			d.escaped = true
			i += 2 // A text that is JSON itself has such an escape every few bytes.
		}
		if i >= len(data) {
			return 0, false
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\':
			end, ok := scanEscape(data, i)
			if !ok {
				return 0, false
			}
			d.escaped = true
			if end-i == len(`\ufffd`) && bytes.EqualFold(data[i:end], []byte(`\ufffd`)) {
				d.replaced = true
			}
			i = end
		case c < ' ':
			return 0, false
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				return 0, false
			}
			i += n
		default:
			i++ // Fewer than eight bytes are left.
		}
	}
}

// isShortEscape says which characters make an escape sequence of two with the backslash before them.
var isShortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// scanEscape reads an escape sequence, or both halves of a surrogate pair.
func scanEscape(data []byte, i int) (int, bool) {
	if i+1 >= len(data) {
		return 0, false
	}
	if isShortEscape[data[i+1]] {
		return i + 2, true
	}
	if data[i+1] != 'u' {
		return 0, false
	}
	r, ok := scanHex(data, i+2)
	if !ok || r >= 0xdc00 && r < 0xe000 {
		return 0, false
	}
	i += 6
	if r < 0xd800 || r >= 0xe000 {
		return i, true
	}
	if !hasPrefix(data[i:], `\u`) {
		return 0, false
	}
	r, ok = scanHex(data, i+2)
	return i + 6, ok && r >= 0xdc00 && r < 0xe000
}

func scanHex(data []byte, i int) (rune, bool) {
	if i+4 > len(data) {
		return 0, false
	}
	var r rune
	for _, c := range data[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// scanNumber reads a number in JSON's grammar.
func scanNumber(data []byte, i int) (int, bool) {
	if i < len(data) && data[i] == '-' {
		i++
	}
	switch {
	case i >= len(data):
		return 0, false
	case data[i] == '0':
		i++
	case '1' <= data[i] && data[i] <= '9':
		i = skipDigits(data, i+1)
	default:
		return 0, false
	}
	if i < len(data) && data[i] == '.' {
		begin := i + 1
		if i = skipDigits(data, begin); i == begin {
			return 0, false
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		begin := i
		if i = skipDigits(data, begin); i == begin {
			return 0, false
		}
	}
	return i, true
}

func skipDigits(data []byte, i int) int {
	for i < len(data) && '0' <= data[i] && data[i] <= '9' {
		i++
	}
	return i
}

package rawjson

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// closingQuote returns the offset of the closing quote of a string that has been scanned and whose first character is at i.
func closingQuote(data []byte, i int) int {
	for {
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			quote, backslash := x^'"'*ones, x^'\\'*ones
			// The lowest set bit is exact, as in special.
			if hit := ((quote-ones)&^quote | (backslash-ones)&^backslash) & highs; hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		switch data[i] {
		case '"':
			return i
		case '\\':
			i += 2
		default:
			i++ // Fewer than eight bytes are left.
		}
	}
}

// reader decodes the inside of a string byte by byte.
type reader struct {
	raw  []byte
	rune [utf8.UTFMax]byte
	// The bytes of rune from left to end are not read yet. A slice of rune would move each reader to the heap.
	left, end int
}

// next returns the next byte of the decoded text, and false at its end.
func (r *reader) next() (byte, bool) {
	if r.left < r.end {
		r.left++
		return r.rune[r.left-1], true
	}
	if len(r.raw) == 0 {
		return 0, false
	}
	c := r.raw[0]
	if c != '\\' {
		r.raw = r.raw[1:]
		return c, true
	}
	c = r.raw[1]
	r.raw = r.raw[2:]
	switch c {
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		meant, _ := scanHex(r.raw, 0)
		r.raw = r.raw[4:]
		if utf16.IsSurrogate(meant) {
			low, _ := scanHex(r.raw, 2)
			meant = utf16.DecodeRune(meant, low)
			r.raw = r.raw[6:]
		}
		r.left, r.end = 1, utf8.EncodeRune(r.rune[:], meant)
		return r.rune[0], true
	default:
		return c, true
	}
}

// unquote appends the decoded inside of a string.
func unquote(out, raw []byte) []byte {
	r := reader{raw: raw}
	for {
		c, more := r.next()
		if !more {
			return out
		}
		out = append(out, c)
	}
}

// equalTexts compares the decoded insides of two strings, from the point where their bytes differ.
func equalTexts(a, b []byte) bool {
	same := int(commonPrefix(a[:min(len(a), len(b))], b[:min(len(a), len(b))]))
	from := plainBefore(a, same)
	x, y := reader{raw: a[from:]}, reader{raw: b[from:]}
	for {
		c, more := x.next()
		d, others := y.next()
		if c != d || more != others {
			return false
		}
		if !more {
			return true
		}
	}
}

// plainBefore returns an offset at or before i that is not inside an escape sequence or between the halves of a surrogate pair: the
// bytes before it, as many as an escape sequence has, contain no backslash. If it finds none, it returns 0.
func plainBefore(raw []byte, i int) int {
	const reach, patience = len(`\u0000`), 1024
	clear := 0
	for at := i - 1; at >= 0 && at > i-patience; at-- {
		if raw[at] == '\\' {
			clear = 0
			continue
		}
		if clear++; clear == reach {
			return at + reach
		}
	}
	return 0
}

// Bytes returns the bytes of the decoded string, and nil for other values. The caller must not change them.
func (v Value) Bytes() []byte {
	if v.Kind() != String {
		return nil
	}
	return v.inside().Bytes()
}

// Text returns the decoded string, and "" for other values.
func (v Value) Text() string { return string(v.Bytes()) }

func (v Value) inside() Name { return Name{v.doc.data[v.start+1 : v.end-1]} }

// Is reports whether v is a string whose decoded text is text.
func (v Value) Is(text string) bool {
	return v.Kind() == String && v.inside().Is(text)
}

// ScalarText returns the text of a scalar as a person or a parameter writes it: 80, not 8e1. It is "" for every other value.
func (v Value) ScalarText() string {
	switch v.Kind() {
	case String:
		return v.Text()
	case Number:
		if i, ok := v.Int(); ok {
			return strconv.FormatInt(i, 10)
		}
		return v.NormalNumber()
	case Bool:
		return string(v.Raw())
	case Absent, Null, List, Object:
	}
	return ""
}

package rawjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deeply objects and lists may be nested: what jsontext takes, so that both refuse the
// same texts.
const maxDepth = 10_000

// Document is a text that has been scanned. It is not changed afterwards, but for what Values remember
// in it, and is used by one goroutine at a time.
type Document struct {
	data []byte
	// tape has the objects and lists in the order in which they begin.
	tape []container
	// sums are by container, 0 where nobody has asked yet; see Value.sum.
	sums []uint64
}

// container is one object or list: data[start:end] with its brackets.
type container struct {
	start, end uint32
	// next is the first container behind this one and all that is in it. While the text is being scanned
	// it is the one around it.
	next uint32
}

const none = math.MaxUint32

var documents = sync.Pool{New: func() any { return &Document{} }}

// Scan reads one JSON value with nothing but space around it. It takes what jsontext takes when names may
// occur twice: UTF-8, whole surrogate pairs, at most 10,000 levels; anything else is a *SyntaxError. The text
// must not be changed while the Document is in use, nor after Release what has been taken from it.
func Scan(data []byte) (*Document, error) {
	d, _ := documents.Get().(*Document)
	d.data, d.tape = data, d.tape[:0]
	if len(data) >= none {
		d.Release()
		return nil, &SyntaxError{errors.New("text of 4 GiB or more")}
	}
	if !d.scan() {
		d.Release()
		return nil, explain(data)
	}
	return d, nil
}

// Release lets another Scan use the memory of d. Neither d nor any Value of it is used afterwards; bytes of
// the text may be. It may be left out.
func (d *Document) Release() {
	d.data, d.sums = nil, d.sums[:0]
	documents.Put(d)
}

// ErrMore is what a SyntaxError is about if one value is followed by more text.
var ErrMore = errors.New("more text after the value")

// SyntaxError says why a text is no JSON, in jsontext's words.
type SyntaxError struct{ err error }

func (e *SyntaxError) Error() string { return e.err.Error() }

func (e *SyntaxError) Unwrap() error { return e.err }

// explain has jsontext say what is wrong with a text that Scan refuses, and where.
func explain(data []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	err := d.SkipValue()
	if err == nil {
		if _, err = d.ReadToken(); err == nil {
			err = ErrMore
		}
	}
	return &SyntaxError{err}
}

// scan reports whether the text is one JSON value.
func (d *Document) scan() bool {
	data, tape := d.data, d.tape
	var (
		i     int
		ok    bool
		open  uint32 = none // the innermost container that is open
		depth int
		named bool // the innermost open container is an object
	)
	for {
		// A value begins here, or the name of a member.
		i = skipSpace(data, i)
		if i >= len(data) {
			return false
		}
	value:
		switch c := data[i]; c {
		case '"':
			if i, ok = scanString(data, i+1); !ok {
				return false
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
			tape = append(tape, container{start: uint32(i), next: open}) //nolint:gosec // Scan has seen to the length.
			open, named = uint32(len(tape)-1), c == '{'                  //nolint:gosec // Fewer than bytes.
			i = skipSpace(data, i+1)
			if i >= len(data) {
				return false
			}
			if data[i] == c+2 { // ']' is '[' + 2, as '}' is '{' + 2.
				break
			}
			if !named {
				goto value
			}
			if i, ok = scanName(data, i); !ok {
				return false
			}
			continue
		case 't':
			if !hasPrefix(data[i:], "true") {
				return false
			}
			i += len("true")
		case 'f':
			if !hasPrefix(data[i:], "false") {
				return false
			}
			i += len("false")
		case 'n':
			if !hasPrefix(data[i:], "null") {
				return false
			}
			i += len("null")
		default:
			if i, ok = scanNumber(data, i); !ok {
				return false
			}
		}
		// A value has ended, or a container has nothing in it.
		for {
			if i < len(data) && data[i] <= ' ' {
				i = skipSpace(data, i)
			}
			if open == none {
				d.tape = tape
				return i == len(data)
			}
			if i >= len(data) {
				return false
			}
			c := data[i]
			i++
			if c == ',' {
				break
			}
			if c != ']' && c != '}' || named != (c == '}') {
				return false
			}
			at := &tape[open]
			open, at.next, at.end = at.next, uint32(len(tape)), uint32(i) //nolint:gosec // Fewer than bytes.
			depth--
			named = open != none && data[tape[open].start] == '{'
		}
		if named {
			if i, ok = scanName(data, skipSpace(data, i)); !ok {
				return false
			}
		}
	}
}

func hasPrefix(data []byte, literal string) bool {
	return len(data) >= len(literal) && string(data[:len(literal)]) == literal
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// scanName reads a member's name and the colon after it.
func scanName(data []byte, i int) (int, bool) {
	if i >= len(data) || data[i] != '"' {
		return 0, false
	}
	i, ok := scanString(data, i+1)
	if !ok {
		return 0, false
	}
	i = skipSpace(data, i)
	if i >= len(data) || data[i] != ':' {
		return 0, false
	}
	return i + 1, true
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special has the high bit set of each byte of x that is a quote, a backslash, a control character or no
// ASCII. The lowest set bit is exact; above it a borrow may have set bits as well.
func special(x uint64) uint64 {
	quote, backslash := x^'"'*ones, x^'\\'*ones
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (x-' '*ones)&^x | x) & highs
}

// scanString reads a string from behind its opening quote and returns the place behind the closing one.
func scanString(data []byte, i int) (int, bool) {
	for {
		for i+8 <= len(data) {
			if hit := special(binary.LittleEndian.Uint64(data[i:])); hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		if i >= len(data) {
			return 0, false
		}
		switch c := data[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\':
			var ok bool
			if i, ok = scanEscape(data, i); !ok {
				return 0, false
			}
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

// scanEscape reads an escape sequence, both halves of a surrogate pair.
func scanEscape(data []byte, i int) (int, bool) {
	if i+1 >= len(data) {
		return 0, false
	}
	switch data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, true
	case 'u':
	default:
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

// scanNumber reads a number of JSON's grammar.
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

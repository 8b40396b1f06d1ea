package rawjson

import (
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// closingQuote returns where the string ends that has been scanned and whose first character is at i.
func closingQuote(data []byte, i int) int {
	for {
		for i+8 <= len(data) {
			x := binary.LittleEndian.Uint64(data[i:])
			quote, backslash := x^'"'*ones, x^'\\'*ones
			// As in special: the lowest set bit is exact.
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

// unquote returns what the inside of a string means.
func unquote(raw []byte) []byte {
	quoted := make([]byte, 0, len(raw)+2)
	quoted = append(append(append(quoted, '"'), raw...), '"')
	// The string has been scanned; jsontext finds no fault with it.
	out, _ := jsontext.AppendUnquote(make([]byte, 0, len(raw)), quoted)
	return out
}

// Text returns what a string means, and "" for other values.
func (v Value) Text() string { return string(v.text()) }

func (v Value) text() []byte {
	if v.Kind() != String {
		return nil
	}
	return v.inside().Bytes()
}

func (v Value) inside() Name { return Name{v.doc.data[v.start+1 : v.end-1]} }

// Is reports whether v is a string that means the text.
func (v Value) Is(text string) bool {
	return v.Kind() == String && v.inside().Is(text)
}

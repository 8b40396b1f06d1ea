package exact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// style is the frequency, in percent, with which a writer differs from the plain spelling.
type style struct {
	*draw
	spaces, escapes int
}

// compact writes without spaces and escapes only where it must.
func (v *value) compact() []byte { return style{}.write(v) }

func (s style) write(v *value) []byte {
	var b bytes.Buffer
	s.space(&b)
	s.value(&b, v)
	s.space(&b)
	return b.Bytes()
}

func (s style) space(b *bytes.Buffer) {
	for s.spaces > 0 && s.IntN(100) < s.spaces {
		b.WriteByte(" \t\r\n"[s.IntN(4)])
	}
}

func (s style) value(b *bytes.Buffer, v *value) {
	switch v.kind {
	case null:
		b.WriteString("null")
	case boolean, number:
		b.WriteString(v.text)
	case text:
		s.text(b, v.text)
	case list:
		b.WriteByte('[')
		for i, item := range v.items {
			s.separate(b, i)
			s.value(b, item)
		}
		s.space(b)
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, m := range v.members {
			s.separate(b, i)
			s.text(b, m.name)
			s.space(b)
			b.WriteByte(':')
			s.space(b)
			s.value(b, m.value)
		}
		s.space(b)
		b.WriteByte('}')
	}
}

func (s style) separate(b *bytes.Buffer, i int) {
	if i > 0 {
		s.space(b)
		b.WriteByte(',')
	}
	s.space(b)
}

func (s style) text(b *bytes.Buffer, t string) {
	b.WriteByte('"')
	for _, r := range t {
		switch short := strings.IndexRune("\b\f\n\r\t\"\\/", r); {
		// The escape of U+FFFD is another text: a byte that is not UTF-8 (D10).
		case r != utf8.RuneError && s.escapes > 0 && s.IntN(100) < s.escapes || r < 0x20 && short < 0:
			s.unicode(b, r)
		case short >= 0 && (r != '/' || s.escapes > 0 && s.IntN(2) == 0):
			b.WriteString([]string{`\b`, `\f`, `\n`, `\r`, `\t`, `\"`, `\\`, `\/`}[strings.IndexRune("\b\f\n\r\t\"\\/", r)])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func (s style) unicode(b *bytes.Buffer, r rune) {
	form := `\u%04x`
	if s.escapes > 0 && s.IntN(2) == 0 {
		form = `\u%04X`
	}
	if high, low := utf16.EncodeRune(r); r > 0xffff {
		fmt.Fprintf(b, form+form, high, low)
		return
	}
	fmt.Fprintf(b, form, r)
}

// parse reads the texts of another library (FieldsV1) and of named cases.
func parse(raw []byte) (*value, error) {
	return parseNext(jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true)))
}

// parseWhole reads one value and fails if more text follows.
func parseWhole(raw []byte) (*value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	v, err := parseNext(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows")
	}
	return v, nil
}

func parseNext(d *jsontext.Decoder) (*value, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return &value{kind: null}, nil
	case 't', 'f':
		return &value{kind: boolean, text: token.String()}, nil
	case '0':
		return &value{kind: number, text: token.String()}, nil
	case '"':
		return &value{kind: text, text: token.String()}, nil
	case '[':
		v := &value{kind: list}
		for d.PeekKind() != ']' {
			item, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
		_, err := d.ReadToken()
		return v, err
	default:
		v := &value{kind: object}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String()}
			if m.value, err = parseNext(d); err != nil {
				return nil, err
			}
			v.members = append(v.members, m)
		}
		_, err := d.ReadToken()
		return v, err
	}
}

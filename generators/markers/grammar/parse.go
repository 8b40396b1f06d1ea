package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Form is the way in which a marker is written.
type Form int

const (
	// Own is +permission-verb:"x", as in KEP-3617. Instead of the colon it may have =, as kubebuilder's markers have.
	Own Form = iota
	// OpenAPI is +k8s:openapi-gen=x-kubernetes-permission-verb:x, which openapi-gen copies into the OpenAPI document.
	OpenAPI
)

// Marker is a marker that is written correctly.
type Marker struct {
	Key  Key
	Form Form
	// Value has no quotes and no escapes, and is never empty. It is "true" for Excluded.
	Value string
	// Offset is the place of the marker's + in the line, and ValueOffset that of its value with the quotes; both count bytes.
	Offset, ValueOffset int
}

// Fault is a mistake in one line.
type Fault struct {
	// Offset and End enclose the text that is wrong; both count bytes from the start of the line.
	Offset, End int
	// Message starts with the subject and ends with the cure.
	Message string
	// Fix is what the text between Offset and End should be, "" if there is no single correction.
	Fix string
}

func (f *Fault) Error() string { return f.Message }

// Parse reads one line of a comment, without its // or the signs of a block comment. It returns false for a line that is no permission
// marker; ask Suspect about those. The error of a marker that has a mistake is a *Fault.
//
// A value stands after a colon or an equals sign. It is quoted as a Go string, "x" or `x`, or it is the rest of the line without the white
// space around it. White space within such a rest is a mistake, except in CEL expressions. The form of openapi-gen has no quotes, and
// openapi-gen puts the value between double quotes into Go code; so backslashes there escape, and a double quote is a mistake.
func Parse(line string) (Marker, bool, error) {
	start := len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
	text, ok := strings.CutPrefix(line[start:], "+")
	if !ok {
		return Marker{}, false, nil
	}
	if rest, ok := strings.CutPrefix(text, openAPITag+"="); ok {
		name := word(rest)
		key, ok := keyOf(extensionPrefix, name)
		if !ok {
			return Marker{}, false, nil
		}
		m := Marker{Key: key, Form: OpenAPI, Offset: start, ValueOffset: len(line) - len(rest) + len(name)}
		if space := line[:start]; strings.Trim(space, " ") != "" {
			return m, true, &Fault{Offset: 0, End: start, Message: fmt.Sprintf("marker %q stands after the white space %q, so openapi-gen ignores it: write a single space", m.name(), space), Fix: " "}
		}
		return m, true, m.openAPIValue(line)
	}
	name := word(text)
	key, ok := keyOf(markerPrefix, name)
	if !ok {
		return Marker{}, false, nil
	}
	m := Marker{Key: key, Offset: start, ValueOffset: start + 1 + len(name)}
	return m, true, m.ownValue(line)
}

// word returns the leading letters, digits, dashes, underscores and dots.
func word(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// ownValue reads what stands at ValueOffset, the separator first.
func (m *Marker) ownValue(line string) error {
	rest := strings.TrimRight(line[m.ValueOffset:], " \t\r")
	if rest == "" && m.Key == Excluded {
		m.Value = "true"
		return nil
	}
	if rest == "" {
		return m.fault(line, len(line), "has no value: write %s", m.example())
	}
	if rest[0] != ':' && rest[0] != '=' {
		return m.fault(line, m.ValueOffset, "has no colon before its value: write %s", m.example())
	}
	value := strings.TrimLeft(rest[1:], " \t")
	m.ValueOffset += len(rest) - len(value)
	if value == "" {
		return m.fault(line, m.ValueOffset, "has no value: write %s", m.example())
	}
	if value[0] != '"' && value[0] != '`' {
		return m.bareValue(line, value)
	}
	quoted, err := strconv.QuotedPrefix(value)
	if err != nil {
		return m.fault(line, m.ValueOffset, "has a value whose quotes do not end or whose escapes are wrong: write %s", m.example())
	}
	if quoted != value {
		return m.fault(line, m.ValueOffset+len(quoted), "has text after its value, %q: put a value that has quotes between backquotes, and other text on a line of its own", strings.TrimSpace(value[len(quoted):]))
	}
	if m.Value, err = strconv.Unquote(quoted); err != nil {
		return m.fault(line, m.ValueOffset, "has a value whose quotes do not end or whose escapes are wrong: write %s", m.example())
	}
	return m.check(line)
}

// bareValue takes a value without quotes, which ends the line.
func (m *Marker) bareValue(line, value string) error {
	m.Value = value
	if m.Key.isExpression() {
		return m.check(line)
	}
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		return m.fault(line, m.ValueOffset+i, "has text after its value, %q: put that on a line of its own", strings.TrimSpace(value[i:]))
	}
	if strings.ContainsAny(value, "'\"`") {
		return m.fault(line, m.ValueOffset, "has the value %s with other quotes: write %s", value, m.example())
	}
	return m.check(line)
}

// openAPIValue reads what stands at ValueOffset as openapi-gen does.
func (m *Marker) openAPIValue(line string) error {
	rest := strings.TrimRight(line[m.ValueOffset:], " \t\r")
	value, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return m.fault(line, m.ValueOffset, "has no colon before its value: write %s", m.example())
	}
	m.ValueOffset++
	switch {
	case value == "":
		return m.fault(line, m.ValueOffset, "has no value: write %s", m.example())
	case value[0] == ' ' || value[0] == '\t':
		return m.fault(line, m.ValueOffset, "has a space before its value, which openapi-gen would keep: remove it")
	}
	var err error
	if m.Value, err = strconv.Unquote(`"` + value + `"`); err != nil {
		return m.fault(line, m.ValueOffset, "has a value %s that openapi-gen cannot put between double quotes: write no double quote and no single backslash, or use %s", value, m.Key.Marker())
	}
	if i := strings.IndexAny(m.Value, " \t"); i >= 0 && !m.Key.isExpression() {
		return m.fault(line, m.ValueOffset, "has the value %q with white space: correct it", m.Value)
	}
	return m.check(line)
}

// check checks the value itself, as far as the grammar goes.
func (m *Marker) check(line string) error {
	switch {
	case strings.TrimSpace(m.Value) == "":
		return m.fault(line, m.ValueOffset, "has an empty value: write %s, or leave the marker out", m.example())
	case m.Key == Excluded && m.Value != "true":
		return m.fault(line, m.ValueOffset, "has the value %q: write true, or leave the marker out", m.Value)
	}
	return nil
}

// fault reports a mistake from an offset to the end of the line.
func (m *Marker) fault(line string, offset int, format string, args ...any) error {
	return &Fault{Offset: offset, End: max(offset, len(line)), Message: fmt.Sprintf("marker %q ", m.name()) + fmt.Sprintf(format, args...)}
}

func (m *Marker) name() string {
	if m.Form == OpenAPI {
		return "+" + openAPITag + "=" + m.Key.Extension()
	}
	return m.Key.Marker()
}

// example returns a marker of the key and form that is written correctly.
func (m *Marker) example() string {
	value := map[Key]string{
		Verb: "example.com/color", Source: "team", By: "team", Treatment: "slash-delimited-prefix",
		Expression: "self.lowerAscii()", Excluded: "true", When: "self == true", Include: "podTemplate",
	}[m.Key]
	if m.Form == OpenAPI {
		return m.name() + ":" + value
	}
	return m.name() + ":" + strconv.Quote(value)
}

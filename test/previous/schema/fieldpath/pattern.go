package fieldpath

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Element is one step of a pattern: a named field or map key, or any item or value.
type Element struct {
	Name string
	Any  bool
}

// Pattern is a parsed path pattern such as .spec.containers[*].image or
// .metadata.annotations["example.com/key"]. The empty pattern is the object's root.
type Pattern []Element

// ParsePattern parses a pattern. A name after a dot ends at the next dot or bracket. Every other name is a JSON string in brackets.
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "[*]"):
			p, rest = append(p, Element{Any: true}), rest[3:]
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return nil, fmt.Errorf("path %q: the bracket at %q is not closed: write [\"name\"] or [*]", text, rest)
			}
			name, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("path %q: %q is no string: write [\"name\"]", text, quoted)
			}
			p, rest = append(p, Element{Name: name}), rest[len(quoted)+2:]
		case strings.HasPrefix(rest, "."):
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			name := rest[1 : 1+end]
			if name == "" || strings.ContainsAny(name, "\"]*") {
				return nil, fmt.Errorf("path %q: %q is no field name: write .field, [*] or [\"name\"]", text, name)
			}
			p, rest = append(p, Element{Name: name}), rest[1+end:]
		default:
			return nil, fmt.Errorf("path %q: unexpected %q: a path is made of .field, [*] and [\"name\"]", text, rest)
		}
	}
	return p, nil
}

// String is the inverse of ParsePattern.
func (p Pattern) String() string {
	var b strings.Builder
	for _, e := range p {
		e.write(&b)
	}
	return b.String()
}

// String returns the element as it stands in a pattern: .name, ["name"] or [*].
func (e Element) String() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

func (e Element) write(b *strings.Builder) {
	switch {
	case e.Any:
		b.WriteString("[*]")
	case e.Name != "" && !strings.ContainsAny(e.Name, ".[]\"*\\"):
		b.WriteByte('.')
		b.WriteString(e.Name)
	default:
		b.WriteByte('[')
		b.WriteString(strconv.Quote(e.Name))
		b.WriteByte(']')
	}
}

// Steps returns the names of the pattern, with "" for any item or value.
func (p Pattern) Steps() []string {
	out := make([]string, len(p))
	for i, e := range p {
		out[i] = e.Name
	}
	return out
}

// Child returns p with one more element, in new memory.
func (p Pattern) Child(e Element) Pattern {
	return append(p[:len(p):len(p)], e)
}

// Covers reports whether every path of the other pattern is a path of p.
func (p Pattern) Covers(other Pattern) bool {
	return slices.EqualFunc(p, other, func(a, b Element) bool { return a.Any || a == b })
}

// Meets reports whether a path of one pattern is at or below a path of the other.
func (p Pattern) Meets(other Pattern) bool {
	n := min(len(p), len(other))
	return slices.EqualFunc(p[:n], other[:n], func(a, b Element) bool { return a.Any || b.Any || a == b })
}

// Extend returns the text of a pattern with one more named field or key, as ParsePattern reads it. It is for walks over many fields of
// which few have a pattern.
func Extend(pattern, name string) string {
	var b strings.Builder
	b.WriteString(pattern)
	Element{Name: name}.write(&b)
	return b.String()
}

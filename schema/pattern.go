package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// element is one step of a path pattern: a named field or map key, or any item or value.
type element struct {
	name string
	any  bool
}

// Pattern is a parsed path pattern such as .spec.containers[*].image or
// .metadata.annotations["example.com/key"]. The empty pattern is the object's root.
type Pattern []element

// ParsePattern parses a pattern. A name after a dot ends at the next dot or bracket. Every other name is a JSON string in brackets.
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "[*]"):
			p, rest = append(p, element{any: true}), rest[3:]
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return nil, fmt.Errorf("path %q: the bracket at %q is not closed: write [\"name\"] or [*]", text, rest)
			}
			name, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, fmt.Errorf("path %q: %q is no string: write [\"name\"]", text, quoted)
			}
			p, rest = append(p, element{name: name}), rest[len(quoted)+2:]
		case strings.HasPrefix(rest, "."):
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			name := rest[1 : 1+end]
			if name == "" || strings.ContainsAny(name, "\"]*") {
				return nil, fmt.Errorf("path %q: %q is no field name: write .field, [*] or [\"name\"]", text, name)
			}
			p, rest = append(p, element{name: name}), rest[1+end:]
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
		switch {
		case e.any:
			b.WriteString("[*]")
		case e.name != "" && !strings.ContainsAny(e.name, ".[]\"*\\"):
			b.WriteString("." + e.name)
		default:
			b.WriteString("[" + strconv.Quote(e.name) + "]")
		}
	}
	return b.String()
}

// Steps returns the names of the pattern, with "" for any item or value.
func (p Pattern) Steps() []string {
	out := make([]string, len(p))
	for i, e := range p {
		out[i] = e.name
	}
	return out
}

// child returns p with one more element, in new memory.
func (p Pattern) child(e element) Pattern {
	return append(p[:len(p):len(p)], e)
}

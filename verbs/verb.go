package verbs

import (
	"fmt"
	"strings"
)

const (
	// Marker is the verb that lets a request pass authorization. It grants no field.
	Marker = "granular"
	// Prefix begins every verb that grants fields, and every reason of fieldperm's authorizer.
	Prefix = "granular:"
)

// Verb is one verb of the grammar, in its only spelling: equal verbs are equal Go values.
// The zero Verb is invalid, covers nothing and is never emitted.
type Verb struct {
	text string
}

// MarkerVerb returns the marker as a Verb.
func MarkerVerb() Verb { return Verb{Marker} }

// All returns granular:*, the verb of every object's root.
func All() Verb { return Verb{Prefix + "*"} }

// New returns granular:name. It fails if the name is not of the grammar.
func New(name string) (Verb, error) {
	if err := ValidateName(name); err != nil {
		return Verb{}, err
	}
	return Verb{Prefix + name}, nil
}

// WithParameter returns the verb with the raw value as its parameter. It reports false, with the
// zero Verb, when the value cannot be a parameter (empty, not UTF-8, or longer than
// MaxParameterBytes once encoded) or the verb takes none (zero, marker, granular:*, or one that has
// a parameter already): then no verb exists, and only more general verbs cover what it would have
// guarded.
func (v Verb) WithParameter(value string) (Verb, bool) {
	if v.IsZero() || v.text == Marker || v.text == Prefix+"*" || strings.HasSuffix(v.text, ")") {
		return Verb{}, false
	}
	n, ok := encodedLength(value)
	if !ok {
		return Verb{}, false
	}
	if n == len(value) {
		return Verb{v.text + "(" + value + ")"}, true
	}
	var b strings.Builder
	b.Grow(len(v.text) + n + len("()"))
	b.WriteString(v.text)
	b.WriteByte('(')
	writeParameter(&b, value)
	b.WriteByte(')')
	return Verb{b.String()}, true
}

// Parse reads a verb. Parse(v.String()) == v for every valid v; a spelling that String would not
// produce (lower-case hex, needless escapes) is refused, so that a verb has one spelling only.
func Parse(text string) (Verb, error) {
	if text == Marker {
		return MarkerVerb(), nil
	}
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok {
		return Verb{}, fmt.Errorf("verb %q: is not granular: begin it with %q", text, Prefix)
	}
	if rest == "*" {
		return All(), nil
	}
	name, parameter, parameterized := strings.Cut(rest, "(")
	if err := ValidateName(name); err != nil {
		return Verb{}, fmt.Errorf("verb %q: %w", text, err)
	}
	if !parameterized {
		return Verb{text}, nil
	}
	encoded, closed := strings.CutSuffix(parameter, ")")
	if !closed {
		return Verb{}, fmt.Errorf("verb %q: the parameter is not closed: end it with %q", text, ")")
	}
	value, err := decodeParameter(encoded)
	if err != nil {
		return Verb{}, fmt.Errorf("verb %q: %w", text, err)
	}
	if again, ok := (Verb{Prefix + name}).WithParameter(value); !ok || again.text != Prefix+name+"("+encoded+")" {
		return Verb{}, fmt.Errorf("verb %q: the parameter is not in its normal spelling: write %q", text, again)
	}
	return Verb{text}, nil
}

// IsZero reports whether v is the invalid zero Verb.
func (v Verb) IsZero() bool { return v.text == "" }

// String returns the verb as an authorizer sees it, "" for the zero Verb.
func (v Verb) String() string { return v.text }

// Name returns the name without prefix and parameter: "*" for granular:*, "" for the marker and the
// zero Verb.
func (v Verb) Name() string {
	rest, ok := strings.CutPrefix(v.text, Prefix)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "(")
	return name
}

// HasParameter reports whether there is a parameter. Unlike Parameter it decodes nothing.
func (v Verb) HasParameter() bool { return strings.HasSuffix(v.text, ")") }

// WithoutParameter returns the verb less its parameter: the verb that stands for all its parameters.
func (v Verb) WithoutParameter() Verb {
	text, _, _ := strings.Cut(v.text, "(")
	return Verb{text}
}

// Parameter returns the decoded parameter and whether there is one.
func (v Verb) Parameter() (string, bool) {
	_, rest, ok := strings.Cut(v.text, "(")
	if !ok {
		return "", false
	}
	value, err := decodeParameter(strings.TrimSuffix(rest, ")"))
	return value, err == nil
}

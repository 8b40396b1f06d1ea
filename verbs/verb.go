package verbs

import (
	"fmt"
	"strings"
)

const (
	// Marker is the verb that lets a request pass authorization. It covers no field.
	Marker = "granular"
	// Prefix begins every verb that covers fields, and every reason of fieldperm's authorizer.
	Prefix = "granular:"
)

// Verb is one verb of the grammar. Each verb has one spelling, so equal verbs are equal Go values. The zero Verb is invalid, covers
// nothing and never appears in output.
type Verb struct {
	text string
}

// MarkerVerb returns the marker as a Verb.
func MarkerVerb() Verb { return Verb{Marker} }

// All returns granular:*, the verb of the root of every object.
func All() Verb { return Verb{Prefix + "*"} }

// Creation returns granular:creation, the verb of the existence of an object.
func Creation() Verb { return Verb{Prefix + "creation"} }

// New returns granular:name. It returns an error if the name does not follow the grammar.
func New(name string) (Verb, error) {
	if err := ValidateName(name); err != nil {
		return Verb{}, err
	}
	return Verb{Prefix + name}, nil
}

// WithParameter returns the verb with the value, not encoded, as its parameter. It reports false, with the zero Verb, in two cases: the
// value cannot be a parameter (it is empty, not UTF-8, or longer than MaxParameterBytes after encoding), or the verb takes no parameter
// (zero, marker, granular:*, or it already has one). Then only more general verbs cover the value.
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

// Parse parses a verb. Parse(v.String()) == v for every valid v. It returns an error for every other spelling (lower-case hex, needless
// escapes), so that a verb has only one spelling.
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

// String returns the verb in the form that authorizers see, "" for the zero Verb.
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

// HasParameter reports whether the verb has a parameter. Unlike Parameter it decodes nothing.
func (v Verb) HasParameter() bool { return strings.HasSuffix(v.text, ")") }

// WithoutParameter returns the verb without its parameter, which covers all parameters.
func (v Verb) WithoutParameter() Verb {
	text, _, _ := strings.Cut(v.text, "(")
	return Verb{text}
}

// Parameter returns the decoded parameter, and whether the verb has one.
func (v Verb) Parameter() (string, bool) {
	_, rest, ok := strings.Cut(v.text, "(")
	if !ok {
		return "", false
	}
	value, err := decodeParameter(strings.TrimSuffix(rest, ")"))
	return value, err == nil
}

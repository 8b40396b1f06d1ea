package access

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

// Form says what a condition is about.
type Form string

// These are the forms. The first three are about the object of the request, the next two have an expression in CEL.
const (
	// OnlyNames and OnlyNamespaces: a rule or a binding is about some objects only.
	OnlyNames      Form = "names"
	OnlyNamespaces Form = "namespaces"
	// OnlyValue: a verb covers one value of its parameter.
	OnlyValue Form = "value"
	// NoBarrier: a barrier under a condition does not hold.
	NoBarrier Form = "barrier"
	// ByPolicy: the expression of a ConditionalPolicy, or its negation.
	ByPolicy Form = "policy"
	// Versioned: the version that is written through may hide fields behind barriers.
	Versioned Form = "version"
)

// Condition must be true for a way to count.
type Condition struct {
	Form Form `json:"form"`
	// Values are names, namespaces, or one value of Parameter. With Not the value must be another one.
	Values    []string `json:"values,omitempty"`
	Parameter string   `json:"parameter,omitempty"`
	Not       bool     `json:"not,omitempty"`
	// CEL must be true. With Not, either the value is another one or CEL is true.
	CEL string `json:"cel,omitempty"`
	// Source is the verb of the barrier, the UncoveredPermissionSet or the ConditionalPolicy.
	Source string `json:"source,omitempty"`
	// Text is the condition in words, if it has no other form.
	Text string `json:"text,omitempty"`
}

// maxValues bounds the names in a text.
const maxValues = 5

// String returns the condition for readers.
func (c Condition) String() string {
	switch c.Form {
	case OnlyNames:
		return "only " + listed(c.Values)
	case OnlyNamespaces:
		return "only in " + listed(c.Values)
	case OnlyValue:
		return "only " + c.Parameter + " " + listed(c.Values)
	case NoBarrier:
		text := c.CEL
		if c.Not {
			text = "not " + c.Parameter + " " + listed(c.Values)
			if c.CEL != "" {
				text += " || " + c.CEL
			}
		}
		return strings.Join(strings.Fields(text), " ") + " (else the barrier " + c.Source + " holds)"
	case ByPolicy:
		return strings.Join(strings.Fields(c.CEL), " ") + " (ConditionalPolicy " + c.Source + ")"
	case Versioned:
	}
	return c.Text
}

func listed(values []string) string {
	more := ""
	if len(values) > maxValues {
		more = fmt.Sprintf(" and %d more", len(values)-maxValues)
		values = values[:maxValues]
	}
	return strings.Join(values, ", ") + more
}

// key is equal for equal conditions only.
func (c Condition) key() string {
	return strings.Join([]string{string(c.Form), strings.Join(c.Values, "\x00"), c.Parameter, strconv.FormatBool(c.Not), c.CEL, c.Source, c.Text}, "\x01")
}

// unlost returns the conditions under which none of the losses is true, and false if one always is.
func unlost(losses []fieldtree.Loss) ([]Condition, bool) {
	var out []Condition
	for _, l := range losses {
		if len(l.When) == 0 && l.One == "" {
			return nil, false
		}
		c := Condition{Form: NoBarrier, Source: l.By}
		if l.Set != "" {
			c.Source += " of " + l.Set
		}
		switch {
		case len(l.When) == 0:
		case l.Set != "":
			c.CEL = "!(" + strings.Join(bracketed(l.When), " && ") + ")"
		default:
			c.CEL = "!(" + strings.Join(bracketed(l.When), " || ") + ")"
		}
		if l.One != "" {
			c.Not, c.Values = true, []string{l.One}
			c.Parameter = "value"
		}
		out = append(out, c)
	}
	return out, true
}

// bracketed returns expressions that can be operands.
func bracketed(expressions []string) []string {
	if len(expressions) == 1 {
		return expressions
	}
	out := make([]string, len(expressions))
	for i, e := range expressions {
		out[i] = "(" + e + ")"
	}
	return out
}

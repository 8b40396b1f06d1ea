package cel

import (
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
)

// Error is the error of an expression that does not compile.
type Error struct {
	// Version is the version of the object whose type the expression does not fit, "" if it fits none.
	Version string
	Faults  []Fault
	// drawn has the faults as CEL shows them in the text, nil for those that CEL has not found.
	drawn error
}

// Fault is one fault of an expression. Line and Column count from 1; both are 0 where the fault is of the expression as a whole.
type Fault struct {
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Message
		if f.Line > 0 {
			lines[i] = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
		}
	}
	if e.Version != "" {
		return fmt.Sprintf("expression, with the object in version %s: %s", e.Version, strings.Join(lines, "; "))
	}
	return "expression: " + strings.Join(lines, "; ")
}

// In returns the error for a document with many expressions: it has the text of this one.
func (e *Error) In(source string) error {
	if e.drawn != nil {
		return fmt.Errorf("expression %q does not compile: %w", source, e.drawn)
	}
	return fmt.Errorf("expression %q %s", source, e.Faults[0].Message)
}

// Fail returns the error of an expression as a whole. The text follows the word "expression".
func Fail(format string, args ...any) *Error {
	return &Error{Faults: []Fault{{Message: fmt.Sprintf(format, args...)}}}
}

// Fail returns an error at a node of the expression.
func (p *Program) Fail(at celast.Expr, format string, args ...any) *Error {
	out := Fail(format, args...)
	where := p.AST.NativeRep().SourceInfo().GetStartLocation(at.ID())
	if where.Line() > 0 {
		out.Faults[0].Line, out.Faults[0].Column = where.Line(), where.Column()+1
	}
	return out
}

func refused(issues *celgo.Issues) *Error {
	out := &Error{drawn: issues.Err()}
	for _, e := range issues.Errors() {
		out.Faults = append(out.Faults, Fault{Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: e.Message})
	}
	return out
}

package expression

import (
	"context"
	"errors"
	"slices"
	"sync"

	celast "github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// Type is the type of the conditions whose text is an expression of this package.
const Type = "fieldperm.dev/cel"

// Expression is a compiled expression. It is immutable and safe for concurrent use. The zero value is an error on every request.
type Expression struct {
	compiler  *Compiler
	source    string
	program   *cel.Program
	plain     *celast.AST
	names     []string
	readsVerb bool
	// closed has the parts that depend on nothing but the request, by the id of their node in plain.
	closedOnce sync.Once
	closed     map[int64]closedPart
}

// String returns the text that was compiled.
func (e *Expression) String() string { return e.source }

// Uses reports whether the expression refers to a variable, such as Changes.
func (e *Expression) Uses(variable string) bool { return slices.Contains(e.names, variable) }

// ReadsVerb reports whether the expression reads request.verb, which only the authorization phase knows.
func (e *Expression) ReadsVerb() bool { return e.readsVerb }

// NeedsObject reports whether the expression refers to the objects or to what is computed from them.
func (e *Expression) NeedsObject() bool {
	return e.Uses(Object) || e.Uses(OldObject) || e.Uses(Changes)
}

// Evaluate returns the value of the expression on a request. data is an *Input, or other data, which stands for NewInput(data, "", nil).
//
// Every error is neither true nor false: of CEL, of the cost limits, of the changes, of the context, and a value that is no boolean.
func (e *Expression) Evaluate(ctx context.Context, data authorizer.ConditionsData) (bool, error) {
	if e == nil || e.program == nil {
		return false, errors.New("the expression is empty: use Compile")
	}
	if data == nil {
		return false, errors.New("a condition has no data to be evaluated on: give it the data of the request")
	}
	in, ok := data.(*Input)
	if !ok {
		in = NewInput(data, "", nil)
	}
	if e.readsVerb && in.verb == "" {
		return false, errors.New("the expression reads request.verb, which is not known in admission: fold it in the authorization phase")
	}
	return cel.Bool(ctx, e.program, (*activation)(in), &in.budget)
}

// Evaluate evaluates a condition that has come back as text. It is unevaluatable if it has another type than Type. An expression that does
// not compile is an error.
func (c *Compiler) Evaluate(ctx context.Context, condition authorizer.Condition, data authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
	if condition.GetType() != Type {
		return authorizer.ConditionsEvaluationResultUnevaluatable()
	}
	if c == nil || c.env == nil {
		return authorizer.ConditionEvaluationResultError(errEmptyCompiler)
	}
	e, err := c.residuals.Get(condition.GetCondition(), c.compile)
	if err != nil {
		return authorizer.ConditionEvaluationResultError(err)
	}
	return resultOf(e.Evaluate(ctx, data))
}

func resultOf(value bool, err error) authorizer.ConditionEvaluationResult {
	if err != nil {
		return authorizer.ConditionEvaluationResultError(err)
	}
	return authorizer.ConditionEvaluationResultBoolean(value)
}

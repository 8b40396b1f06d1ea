package expression

import (
	"context"
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// Remainder is a residual: what is left of an expression when it knows a part of the request. It is compiled when it is evaluated or shown,
// because the authorization phase needs neither, and each name of an object makes another residual. It does not read request.verb. Its text is a
// condition on its own. It is safe for concurrent use. The zero value is an error on every request.
type Remainder struct {
	of    *Expression
	known Known
	// expr is what is left, nil for the whole expression.
	expr celast.Expr

	once     sync.Once
	compiled *Expression
	err      error
}

// Expression returns the compiled residual. Errors are of type *cel.Error, except for faults of the environment.
func (r *Remainder) Expression() (*Expression, error) {
	if r == nil || r.of == nil {
		return nil, errors.New("the residual is empty: use Fold")
	}
	if r.expr == nil {
		return r.of, nil
	}
	r.once.Do(func() {
		if r.compiled, r.err = r.of.remaining(r.expr); errors.As(r.err, new(*cel.Error)) {
			// A literal can be what CEL refuses to plan, such as a regular expression with a fault, and many literals can be too long.
			r.compiled, r.err = r.withoutLiterals()
		}
	})
	return r.compiled, r.err
}

// withoutLiterals compiles the residual that refers to known values where it can. Its cost is that of Fold, which has ended in time.
func (r *Remainder) withoutLiterals() (*Expression, error) {
	out, err := r.of.fold(context.Background(), r.known, false)
	if err != nil {
		return nil, err
	}
	return r.of.remaining(out.expr)
}

// remaining compiles a part of an expression.
func (e *Expression) remaining(at celast.Expr) (*Expression, error) {
	text, err := celgo.ExprToString(at, e.plain.SourceInfo())
	if err != nil {
		return nil, fmt.Errorf("residual: %w", err)
	}
	left, err := e.compiler.residuals.Get(text, e.compiler.compile)
	if err != nil {
		return nil, fmt.Errorf("residual: %w", err)
	}
	if left.readsVerb {
		return nil, errReadsVerb()
	}
	return left, nil
}

func errReadsVerb() error {
	return cel.Fail("the residual reads request.verb: read it outside of has and of local variables")
}

// String returns the text of the residual, "" if it does not compile.
func (r *Remainder) String() string {
	e, err := r.Expression()
	if err != nil {
		return ""
	}
	return e.source
}

// Evaluate returns the value of the residual on a request, as Expression.Evaluate does. It is an error if the residual does not compile.
func (r *Remainder) Evaluate(ctx context.Context, data authorizer.ConditionsData) (bool, error) {
	e, err := r.Expression()
	if err != nil {
		return false, err
	}
	return e.Evaluate(ctx, data)
}

func (r *Remainder) result(ctx context.Context, data authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
	return resultOf(r.Evaluate(ctx, data))
}

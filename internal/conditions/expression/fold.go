package expression

import (
	"context"
	"errors"
	"fmt"
	"slices"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// Outcome is the kind of a Folded.
type Outcome int

// These are the outcomes. The zero value is an error.
const (
	Failed Outcome = iota
	True
	False
	Residual
)

// Folded is what is left of an expression when it knows a part of the request. The zero value is an error.
type Folded struct {
	Outcome Outcome
	// Err is the error of Failed.
	Err error
	// Residual is what is to be evaluated in admission.
	Residual *Remainder
}

// Fold evaluates what is known. Facts that admission may see otherwise count as not known: the operation, unless the verb determines it; the
// name on create; an empty namespace.
//
// The first call compiles the parts of the expression that depend on nothing but the request, about a millisecond for each.
//
// A residual is not compiled. If it does not compile, it is an error when it is evaluated. If it reads request.verb, or ctx ends, the outcome is
// Failed.
func (e *Expression) Fold(ctx context.Context, known Known) Folded {
	if e == nil || e.program == nil {
		return Folded{Err: errors.New("the expression is empty: use Compile")}
	}
	if err := known.validate(); err != nil {
		return Folded{Err: err}
	}
	out, err := e.fold(ctx, known, true)
	if err != nil {
		return Folded{Err: err}
	}
	switch out.kind {
	case knownTrue:
		return Folded{Outcome: True}
	case knownFalse:
		return Folded{Outcome: False}
	case knownError:
		return Folded{Err: out.err}
	case open:
	}
	left := &Remainder{of: e, known: known}
	if out.expr != e.plain.Expr() {
		left.expr = out.expr
	}
	if e.readsVerb && readsVerb(out.expr) {
		return Folded{Err: errReadsVerb()}
	}
	return Folded{Outcome: Residual, Residual: left}
}

// fold returns the folded expression. With literals it has known values as literals; else it does so for the verb only. The error is not a value
// of the expression.
func (e *Expression) fold(ctx context.Context, known Known, literals bool) (part, error) {
	values, err := celgo.NewActivation(map[string]any{Request: known.value()})
	if err != nil {
		return part{}, err
	}
	f := &folder{ctx: ctx, known: known, closed: e.closedParts(), values: values, literals: literals}
	out := f.fold(e.plain.Expr(), true)
	return out, f.stopped
}

// partKind says what is known of the value of a part.
type partKind int

const (
	open partKind = iota
	knownTrue
	knownFalse
	knownError
)

// part is a folded part. expr has the value of the part on every request, whatever the kind is.
type part struct {
	kind partKind
	expr celast.Expr
	err  error
}

type folder struct {
	ctx      context.Context
	known    Known
	closed   map[int64]closedPart
	values   celgo.Activation
	literals bool
	budget   cel.Budget
	// stopped is the error of the evaluation itself, which is no value of the expression.
	stopped error
}

// fold returns the folded part. In a boolean context each value that is no boolean is an error; there `x && true` is x.
func (f *folder) fold(at celast.Expr, boolean bool) part {
	if at.Kind() == celast.LiteralKind {
		out := literal(at.ID(), at.AsLiteral(), boolean)
		if out.kind != knownError {
			out.expr = at
		}
		return out
	}
	if isBoolean(at) {
		return f.foldOperator(at, boolean)
	}
	if closed, ok := f.closed[at.ID()]; ok && f.known.areKnown(closed.paths) {
		if out, ok := f.foldClosed(at, closed, boolean); ok {
			return out
		}
	}
	return f.foldChildren(at)
}

func (f *folder) foldChildren(at celast.Expr) part {
	of := children(at)
	with := make([]celast.Expr, len(of))
	for i, child := range of {
		with[i] = f.fold(child, false).expr
	}
	return changed(at, of, with...)
}

// changed returns the node with other children, or the node itself.
func changed(at celast.Expr, from []celast.Expr, with ...celast.Expr) part {
	if slices.Equal(from, with) {
		return part{expr: at}
	}
	return part{expr: rebuild(at, with)}
}

// foldClosed evaluates a part. It returns false if the part must stay as it is.
func (f *folder) foldClosed(at celast.Expr, closed closedPart, boolean bool) (part, bool) {
	value, err := f.evaluate(closed.program)
	if err != nil {
		if boolean {
			return failed(at.ID(), err, types.False), true
		}
		if closed.zero == nil && !readsVerb(at) {
			// An error of another type may not fit its surroundings.
			return part{}, false
		}
		return failed(at.ID(), err, closed.zero), true
	}
	if _, isBool := value.(types.Bool); boolean || isBool {
		return literal(at.ID(), value, boolean), true
	}
	if !f.literals && !readsVerb(at) || size(value) > maxLiteral {
		return part{}, false
	}
	expr, ok := printable(at.ID(), value)
	return part{expr: expr}, ok
}

func (f *folder) evaluate(program *cel.Program) (ref.Val, error) {
	value, details, err := program.ContextEval(f.ctx, f.values)
	switch {
	case f.ctx.Err() != nil:
		f.stopped = f.ctx.Err()
	case details == nil || details.ActualCost() == nil || f.budget.Spend(*details.ActualCost()) != nil:
		f.stopped = errors.New("the expression costs too much to fold: use fewer loops")
	}
	return value, err
}

func (f *folder) foldOperator(at celast.Expr, boolean bool) part {
	call := at.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return f.foldLogic(at, knownFalse, knownTrue, boolean)
	case operators.LogicalOr:
		return f.foldLogic(at, knownTrue, knownFalse, boolean)
	case operators.LogicalNot:
		of := f.fold(args[0], true)
		switch of.kind {
		case knownTrue:
			return truth(at.ID(), false)
		case knownFalse:
			return truth(at.ID(), true)
		case knownError:
			return of
		default:
			return changed(at, args, of.expr)
		}
	default:
		return f.foldConditional(at, boolean)
	}
}

// foldLogic folds && and ||. One operand with the deciding value decides, whatever the other is.
func (f *folder) foldLogic(at celast.Expr, decides, neutral partKind, boolean bool) part {
	args := at.AsCall().Args()
	left, right := f.fold(args[0], true), f.fold(args[1], true)
	switch {
	case left.kind == decides || right.kind == decides:
		return truth(at.ID(), decides == knownTrue)
	case left.kind == neutral && (boolean || right.kind != open):
		return right
	case right.kind == neutral && (boolean || left.kind != open):
		return left
	case left.kind == knownError && right.kind == knownError:
		return left
	default:
		return changed(at, args, left.expr, right.expr)
	}
}

func (f *folder) foldConditional(at celast.Expr, boolean bool) part {
	args := at.AsCall().Args()
	on := f.fold(args[0], true)
	switch on.kind {
	case knownTrue:
		return f.fold(args[1], boolean)
	case knownFalse:
		return f.fold(args[2], boolean)
	case knownError:
		if boolean {
			return on
		}
	case open:
	}
	return changed(at, args, on.expr, f.fold(args[1], boolean).expr, f.fold(args[2], boolean).expr)
}

func truth(id int64, value bool) part {
	kind := knownFalse
	if value {
		kind = knownTrue
	}
	return part{kind: kind, expr: celast.NewExprFactory().NewLiteral(id, types.Bool(value))}
}

// literal returns the part of a value.
func literal(id int64, value ref.Val, boolean bool) part {
	if b, ok := value.(types.Bool); ok {
		return truth(id, bool(b))
	}
	if boolean {
		return failed(id, fmt.Errorf("the value is %s: make it yield bool", value.Type().TypeName()), types.False)
	}
	return part{expr: celast.NewExprFactory().NewLiteral(id, value)}
}

// failed returns a part that is an error in every evaluation too, of the type of zero: {"": zero}["the message"].
func failed(id int64, err error, zero ref.Val) part {
	f := celast.NewExprFactory()
	text := func(of string) celast.Expr { return f.NewLiteral(id, types.String(of)) }
	if zero == nil {
		empty := f.NewCall(id, "dyn", f.NewMap(id, nil))
		return part{kind: knownError, err: err, expr: f.NewCall(id, operators.Index, empty, text(shortened(err.Error())))}
	}
	single := f.NewMap(id, []celast.EntryExpr{f.NewMapEntry(id, text(""), f.NewLiteral(id, zero), false)})
	return part{kind: knownError, err: err, expr: f.NewCall(id, operators.Index, single, text(shortened(err.Error())))}
}

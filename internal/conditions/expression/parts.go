package expression

import (
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// hasMacro is the call that is a macro of its own kind: its argument is a field, and not a value.
const hasMacro = "has"

// closedPart is a part of an expression that depends on nothing but fields of the request.
type closedPart struct {
	program *cel.Program
	// zero has the type of the part, nil for dyn.
	zero ref.Val
	// paths are the fields of the request that it reads.
	paths [][]string
}

// closedParts compiles the largest closed parts below the boolean operators, and the fields of the request in them. The fields count where a
// part cannot be replaced, because some of its fields are not known or its value has no text.
func (e *Expression) closedParts() map[int64]closedPart {
	e.closedOnce.Do(func() {
		e.closed = map[int64]closedPart{}
		e.findClosed(e.plain.Expr(), false)
	})
	return e.closed
}

func (e *Expression) findClosed(at celast.Expr, within bool) {
	if at.Kind() == celast.LiteralKind || at.Kind() == celast.IdentKind {
		return
	}
	isField := isRequestField(at)
	if isField || !within && !isBoolean(at) {
		if part, ok := e.compilePart(at); ok {
			e.closed[at.ID()] = part
			within = true
		}
	}
	if isField {
		return
	}
	for _, child := range children(at) {
		e.findClosed(child, within)
	}
}

// compilePart compiles a part on its own. A part with a local variable of its surroundings does not compile, because no local variable has the
// name of something else; see checkNames.
func (e *Expression) compilePart(at celast.Expr) (closedPart, bool) {
	if mentions(at, Object, OldObject, Options, Changes) {
		return closedPart{}, false
	}
	text, err := celgo.ExprToString(at, e.plain.SourceInfo())
	if err != nil {
		return closedPart{}, false
	}
	program, err := e.compiler.env.CompilePart(text)
	if err != nil {
		return closedPart{}, false
	}
	return closedPart{program: program, zero: zeroOf(program.AST.OutputType()), paths: requestPaths(at)}, true
}

// zeroOf returns a value of a type that has literals, else nil.
func zeroOf(of *celgo.Type) ref.Val {
	switch of.Kind() {
	case types.BoolKind:
		return types.False
	case types.StringKind:
		return types.String("")
	case types.IntKind:
		return types.IntZero
	default:
		return nil
	}
}

// isBoolean reports whether a node is an operator that Fold looks into.
func isBoolean(at celast.Expr) bool {
	if at.Kind() != celast.CallKind {
		return false
	}
	switch at.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		return true
	default:
		return false
	}
}

// children returns the parts of a node that are values on their own. The argument of has is none, but what the field is of may be.
func children(at celast.Expr) []celast.Expr {
	switch at.Kind() {
	case celast.SelectKind:
		return []celast.Expr{at.AsSelect().Operand()}
	case celast.CallKind:
		call := at.AsCall()
		if isHas(call) {
			return children(call.Args()[0])
		}
		out := slices.Clone(call.Args())
		if call.IsMemberFunction() {
			out = append(out, call.Target())
		}
		return out
	case celast.ListKind:
		return at.AsList().Elements()
	case celast.MapKind:
		var out []celast.Expr
		for _, entry := range at.AsMap().Entries() {
			out = append(out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return out
	case celast.StructKind:
		var out []celast.Expr
		for _, field := range at.AsStruct().Fields() {
			out = append(out, field.AsStructField().Value())
		}
		return out
	default:
		return nil
	}
}

func isHas(call celast.CallExpr) bool {
	return !call.IsMemberFunction() && call.FunctionName() == hasMacro && len(call.Args()) == 1 && call.Args()[0].Kind() == celast.SelectKind
}

// rebuild returns the node with other children, in the order of children.
func rebuild(at celast.Expr, with []celast.Expr) celast.Expr {
	f := celast.NewExprFactory()
	switch at.Kind() {
	case celast.SelectKind:
		return f.NewSelect(at.ID(), with[0], at.AsSelect().FieldName())
	case celast.CallKind:
		call := at.AsCall()
		if isHas(call) {
			return f.NewCall(at.ID(), hasMacro, rebuild(call.Args()[0], with))
		}
		n := len(call.Args())
		if call.IsMemberFunction() {
			return f.NewMemberCall(at.ID(), call.FunctionName(), with[n], with[:n]...)
		}
		return f.NewCall(at.ID(), call.FunctionName(), with...)
	case celast.ListKind:
		return f.NewList(at.ID(), with, at.AsList().OptionalIndices())
	case celast.MapKind:
		entries := slices.Clone(at.AsMap().Entries())
		for i, entry := range entries {
			entries[i] = f.NewMapEntry(entry.ID(), with[2*i], with[2*i+1], entry.AsMapEntry().IsOptional())
		}
		return f.NewMap(at.ID(), entries)
	case celast.StructKind:
		fields := slices.Clone(at.AsStruct().Fields())
		for i, field := range fields {
			fields[i] = f.NewStructField(field.ID(), field.AsStructField().Name(), with[i], field.AsStructField().IsOptional())
		}
		return f.NewStruct(at.ID(), at.AsStruct().TypeName(), fields)
	default:
		return at
	}
}

// requestPaths returns the fields of the request that a part names.
func requestPaths(at celast.Expr) [][]string {
	if path, ok := requestPath(at); ok {
		return [][]string{path}
	}
	var out [][]string
	if at.Kind() == celast.CallKind && isHas(at.AsCall()) {
		return requestPaths(at.AsCall().Args()[0])
	}
	for _, child := range children(at) {
		out = append(out, requestPaths(child)...)
	}
	return out
}

// isRequestField reports whether a node is request.a.b or has(request.a.b).
func isRequestField(at celast.Expr) bool {
	if at.Kind() == celast.CallKind && isHas(at.AsCall()) {
		at = at.AsCall().Args()[0]
	}
	_, ok := requestPath(at)
	return ok
}

// requestPath returns the path of request.a.b.
func requestPath(at celast.Expr) ([]string, bool) {
	var path []string
	for at.Kind() == celast.SelectKind {
		path = append(path, at.AsSelect().FieldName())
		at = at.AsSelect().Operand()
	}
	if at.Kind() != celast.IdentKind || strings.TrimPrefix(at.AsIdent(), ".") != Request {
		return nil, false
	}
	slices.Reverse(path)
	return path, true
}

func readsVerb(at celast.Expr) bool {
	return slices.ContainsFunc(requestPaths(at), func(path []string) bool { return len(path) > 0 && path[0] == verbField })
}

func mentions(at celast.Expr, names ...string) bool {
	found := false
	celast.PreOrderVisit(at, celast.NewExprVisitor(func(e celast.Expr) {
		found = found || e.Kind() == celast.IdentKind && slices.Contains(names, strings.TrimPrefix(e.AsIdent(), "."))
	}))
	return found
}

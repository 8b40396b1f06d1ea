package cel

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// MaxLength is the longest expression, in bytes. k8s.io/apiserver limits conditions to it.
	MaxLength = 10240
	// EstimatedElements is the size of lists and maps that the cost of an expression is estimated with. It is a limit of the estimate only:
	// the cost at run time is limited apart.
	EstimatedElements = 64
	// EstimatedLength is the length of strings in bytes that the cost of an expression is estimated with.
	EstimatedLength = 1024
)

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	celgo.Program
	AST *celgo.Ast
}

// Compile type-checks an expression, estimates its cost and plans it. result is the type that it must yield; dyn may become it.
//
// Errors are of type *Error, except for faults of the environment.
func (e *Environment) Compile(source string, result *celgo.Type) (*Program, error) {
	ast, err := e.Check(source, result)
	if err != nil {
		return nil, err
	}
	return e.plan(ast)
}

// CompilePart compiles a part of an expression that Compile has accepted. It may yield any type.
func (e *Environment) CompilePart(source string) (*Program, error) {
	ast, issues := e.checked.Compile(source)
	if issues.Err() != nil {
		return nil, refused(issues)
	}
	return e.plan(ast)
}

// plan makes a program. The environment limits its cost to that of one call. Loops check the context as often as in Kubernetes.
func (e *Environment) plan(ast *celgo.Ast) (*Program, error) {
	out, err := e.checked.Program(ast, celgo.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, Fail("cannot be planned: %v", err)
	}
	return &Program{out, ast}, nil
}

// Check is Compile without a program.
func (e *Environment) Check(source string, result *celgo.Type) (*celgo.Ast, error) {
	if len(source) > MaxLength {
		return nil, Fail("is %d bytes long: shorten it to %d bytes", len(source), MaxLength)
	}
	ast, issues := e.checked.Compile(source)
	if issues.Err() != nil {
		return nil, refused(issues)
	}
	if out := ast.OutputType(); !out.IsExactType(result) && !out.IsExactType(celgo.DynType) {
		return nil, Fail("yields %s: make it yield %s", out, result)
	}
	cost, err := e.checked.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{}})
	if err != nil {
		return nil, fmt.Errorf("cost of the expression: %w", err)
	}
	if cost.Max > celconfig.PerCallLimit {
		return nil, Fail("has an estimated cost of %d on lists of %d elements: reduce it to %d, with fewer nested loops", cost.Max, EstimatedElements, celconfig.PerCallLimit)
	}
	return ast, nil
}

// sizes estimates sizes that no type limits.
type sizes struct{}

func (sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if kind := node.Type().Kind(); kind == celgo.StringKind || kind == celgo.BytesKind {
		return &checker.SizeEstimate{Max: EstimatedLength}
	}
	return &checker.SizeEstimate{Max: EstimatedElements}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

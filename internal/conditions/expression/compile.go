package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	celast "github.com/google/cel-go/common/ast"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// MaxLength is the longest expression, in bytes. The library limits conditions to it.
	MaxLength = 10240
	// EstimatedElements is the size of lists and maps that the cost of an expression is estimated with. It is a limit of the estimate only:
	// the cost at run time is limited apart.
	EstimatedElements = 64
	// EstimatedLength is the length of strings in bytes that the cost of an expression is estimated with.
	EstimatedLength = 1024
	// cachedPolicies and cachedResiduals are the bytes of compiled text that a Compiler keeps. A compiled text takes about a hundred times as much
	// memory as the text. Most of the policies are in force, and are held by their users anyway.
	cachedPolicies, cachedResiduals = 256 << 10, 64 << 10
)

// Compiler compiles expressions. It is safe for concurrent use. The zero value compiles nothing; use NewCompiler.
type Compiler struct {
	env *environments
	// policies has what was compiled for its own sake, so that it can be checked on many types. Compiling takes a hundred times as long as evaluating.
	policies *cache
	// residuals are apart from policies, because users without rights can make any number of them. A residual is the same for all requests of a user
	// that differ in the object only.
	residuals *cache
}

// NewCompiler returns a compiler. The first call in a process takes tens of milliseconds.
func NewCompiler() (*Compiler, error) {
	env, err := sharedEnvironments()
	if err != nil {
		return nil, fmt.Errorf("CEL environment: %w", err)
	}
	return &Compiler{env: env, policies: newCache(cachedPolicies), residuals: newCache(cachedResiduals)}, nil
}

var errEmptyCompiler = errors.New("the compiler is empty: use NewCompiler")

// Fault is one fault of an expression. Line and Column count from 1; both are 0 where the fault is of the expression as a whole.
type Fault struct {
	Line, Column int
	Message      string
}

// Error is the error of an expression that does not compile.
type Error struct {
	// Version is the version of the object whose type the expression does not fit, "" if it fits none.
	Version string
	Faults  []Fault
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

func fault(format string, args ...any) *Error {
	return &Error{Faults: []Fault{{Message: fmt.Sprintf(format, args...)}}}
}

func faultsOf(issues *cel.Issues) *Error {
	out := &Error{}
	for _, e := range issues.Errors() {
		out.Faults = append(out.Faults, Fault{Line: e.Location.Line(), Column: e.Location.Column() + 1, Message: e.Message})
	}
	return out
}

// Compile type-checks an expression, estimates its cost and plans it. With types it also checks the expression on the type of the object in
// each version; the evaluation does not depend on types.
//
// Errors are of type *Error, except for faults of the environment.
func (c *Compiler) Compile(source string, types *Types) (*Expression, error) {
	if c == nil || c.env == nil {
		return nil, errEmptyCompiler
	}
	e, err := c.compileCached(source, c.policies)
	if err != nil || types == nil {
		return e, err
	}
	for _, v := range types.versions {
		if _, err := check(v.env, source); err != nil {
			var of *Error
			if errors.As(err, &of) {
				of.Version = v.name
			}
			return nil, err
		}
	}
	return e, nil
}

func (c *Compiler) compileCached(source string, in *cache) (*Expression, error) {
	if len(source) > MaxLength {
		return nil, fault("is %d bytes long: shorten it to %d bytes", len(source), MaxLength)
	}
	if e, ok := in.get(source); ok {
		return e, nil
	}
	e, err := c.compile(source)
	if err != nil {
		return nil, err
	}
	in.add(e)
	return e, nil
}

func (c *Compiler) compile(source string) (*Expression, error) {
	checked, err := check(c.env.checked, source)
	if err != nil {
		return nil, err
	}
	if err := c.checkNames(checked); err != nil {
		return nil, err
	}
	plain, issues := c.env.plain.Parse(source)
	if issues.Err() != nil {
		return nil, faultsOf(issues)
	}
	program, err := c.program(checked)
	if err != nil {
		return nil, fault("cannot be planned: %v", err)
	}
	return &Expression{compiler: c, source: source, program: program, plain: plain.NativeRep(), names: freeNames(checked), readsVerb: readsVerb(plain.NativeRep().Expr())}, nil
}

// program plans a checked expression. The environment limits its cost to that of one call. Loops check the context as often as in
// Kubernetes.
func (c *Compiler) program(checked *cel.Ast) (cel.Program, error) {
	return c.env.checked.Program(checked, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
}

// check compiles to a boolean expression whose estimated cost is within the limit of one call.
func check(env *cel.Env, source string) (*cel.Ast, error) {
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, faultsOf(issues)
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fault("yields %s: make it yield bool", out)
	}
	cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{}})
	if err != nil {
		return nil, fmt.Errorf("cost of the expression: %w", err)
	}
	if cost.Max > celconfig.PerCallLimit {
		return nil, fault("has an estimated cost of %d on lists of %d elements: reduce it to %d, with fewer nested loops", cost.Max, EstimatedElements, celconfig.PerCallLimit)
	}
	return ast, nil
}

// sizes estimates sizes that no type limits.
type sizes struct{}

func (sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if kind := node.Type().Kind(); kind == cel.StringKind || kind == cel.BytesKind {
		return &checker.SizeEstimate{Max: EstimatedLength}
	}
	return &checker.SizeEstimate{Max: EstimatedElements}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// checkNames refuses a local variable that hides another name, because a part of the expression would then mean something else outside of
// it. It also refuses request without a field: what is known of the request depends on the field.
func (c *Compiler) checkNames(checked *cel.Ast) error {
	for _, e := range celast.MatchDescendants(celast.NavigateAST(checked.NativeRep()), celast.KindMatcher(celast.ComprehensionKind)) {
		loop := e.AsComprehension()
		for _, name := range []string{loop.IterVar(), loop.IterVar2(), loop.AccuVar()} {
			if name == "" || strings.ContainsAny(name[:1], "@#") || strings.HasPrefix(name, "__") {
				continue
			}
			_, issues := c.env.checked.Compile(name)
			if issues.Err() == nil || name == "google" {
				return at(checked, e, "local variable %q hides another name: name it otherwise", name)
			}
		}
	}
	for _, e := range identifiers(checked, Request) {
		parent, ok := e.Parent()
		if !ok || parent.Kind() != celast.SelectKind {
			return at(checked, e, "%q has no field after it: name one, as in request.userInfo", Request)
		}
	}
	return nil
}

func at(ast *cel.Ast, e celast.Expr, format string, args ...any) *Error {
	out := fault(format, args...)
	where := ast.NativeRep().SourceInfo().GetStartLocation(e.ID())
	if where.Line() > 0 {
		out.Faults[0].Line, out.Faults[0].Column = where.Line(), where.Column()+1
	}
	return out
}

// identifiers returns the places where one of the names occurs.
func identifiers(ast *cel.Ast, names ...string) []celast.NavigableExpr {
	return celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), func(e celast.NavigableExpr) bool {
		return e.Kind() == celast.IdentKind && slices.Contains(names, strings.TrimPrefix(e.AsIdent(), "."))
	})
}

// freeNames returns the variables that an expression refers to. No local variable has the name of one of them.
func freeNames(ast *cel.Ast) []string {
	var out []string
	for _, name := range []string{Object, OldObject, Request, Options, Changes} {
		if len(identifiers(ast, name)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// cachedPolicies and cachedResiduals are the bytes of compiled text that a Compiler keeps. Most of the policies are in force, and are held by their users
// anyway.
const cachedPolicies, cachedResiduals = 256 << 10, 64 << 10

// Compiler compiles expressions. It is safe for concurrent use. The zero value compiles nothing; use NewCompiler.
type Compiler struct {
	env *cel.Environment
	// policies has what was compiled for its own sake, so that it can be checked on many types.
	policies *cel.Cache[*Expression]
	// residuals are apart from policies, because users without rights can make any number of them. A residual is the same for all requests of a user
	// that differ in the object only.
	residuals *cel.Cache[*Expression]
}

// NewCompiler returns a compiler. The first call in a process takes tens of milliseconds.
func NewCompiler() (*Compiler, error) {
	env, err := untypedEnvironment()
	if err != nil {
		return nil, fmt.Errorf("CEL environment: %w", err)
	}
	return &Compiler{env: env, policies: cel.NewCache[*Expression](cachedPolicies), residuals: cel.NewCache[*Expression](cachedResiduals)}, nil
}

var errEmptyCompiler = errors.New("the compiler is empty: use NewCompiler")

// Compile type-checks an expression, estimates its cost and plans it. With types it also checks the expression on the type of the object in
// each version; the evaluation does not depend on types.
//
// Errors are of type *cel.Error, except for faults of the environment.
func (c *Compiler) Compile(source string, types *Types) (*Expression, error) {
	if c == nil || c.env == nil {
		return nil, errEmptyCompiler
	}
	e, err := c.policies.Get(source, c.compile)
	if err != nil || types == nil {
		return e, err
	}
	for _, v := range types.versions {
		if _, err := v.env.Check(source, celgo.BoolType); err != nil {
			var of *cel.Error
			if errors.As(err, &of) {
				of.Version = v.name
			}
			return nil, err
		}
	}
	return e, nil
}

func (c *Compiler) compile(source string) (*Expression, error) {
	program, err := c.env.Compile(source, celgo.BoolType)
	if err != nil {
		return nil, err
	}
	if err := c.checkNames(program); err != nil {
		return nil, err
	}
	plain, err := c.env.Parse(source)
	if err != nil {
		return nil, err
	}
	return &Expression{compiler: c, source: source, program: program, plain: plain.NativeRep(), names: freeNames(program.AST), readsVerb: readsVerb(plain.NativeRep().Expr())}, nil
}

// checkNames refuses a local variable that hides another name, because a part of the expression would then mean something else outside of
// it. It also refuses request without a field: what is known of the request depends on the field.
func (c *Compiler) checkNames(program *cel.Program) error {
	for _, e := range celast.MatchDescendants(celast.NavigateAST(program.AST.NativeRep()), celast.KindMatcher(celast.ComprehensionKind)) {
		loop := e.AsComprehension()
		for _, name := range []string{loop.IterVar(), loop.IterVar2(), loop.AccuVar()} {
			if name == "" || strings.ContainsAny(name[:1], "@#") || strings.HasPrefix(name, "__") {
				continue
			}
			if c.env.Declares(name) || name == "google" {
				return program.Fail(e, "local variable %q hides another name: name it otherwise", name)
			}
		}
	}
	for _, e := range identifiers(program.AST, Request) {
		parent, ok := e.Parent()
		if !ok || parent.Kind() != celast.SelectKind {
			return program.Fail(e, "%q has no field after it: name one, as in request.userInfo", Request)
		}
	}
	return nil
}

// identifiers returns the places where one of the names occurs.
func identifiers(ast *celgo.Ast, names ...string) []celast.NavigableExpr {
	return celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), func(e celast.NavigableExpr) bool {
		return e.Kind() == celast.IdentKind && slices.Contains(names, strings.TrimPrefix(e.AsIdent(), "."))
	})
}

// freeNames returns the variables that an expression refers to. No local variable has the name of one of them.
func freeNames(ast *celgo.Ast) []string {
	var out []string
	for _, name := range []string{Object, OldObject, Request, Options, Changes} {
		if len(identifiers(ast, name)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

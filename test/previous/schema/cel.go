package schema

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// dialect is a CEL environment with Kubernetes' own libraries and the variables of one use.
type dialect struct {
	env func() (*cel.Env, error)
}

// newDialect defers the cost of the environment (tens of milliseconds) to the first expression.
func newDialect(variables ...cel.EnvOption) dialect {
	return dialect{env: sync.OnceValues(func() (*cel.Env, error) { return newEnv(nil, variables...) })}
}

// newRequestDialect returns a dialect that knows the fields of an admission request, as API servers do. A misspelled field is then an
// error of the expression, not of each evaluation.
func newRequestDialect() dialect {
	return dialect{env: sync.OnceValues(func() (*cel.Env, error) {
		request := plugincel.BuildRequestType()
		return newEnv([]*apiservercel.DeclType{request}, cel.Variable(requestVariable, request.CelType()), cel.Variable(objectVariable, cel.DynType), cel.Variable(oldObjectVariable, cel.DynType))
	})}
}

func newEnv(types []*apiservercel.DeclType, variables ...cel.EnvOption) (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        variables,
		DeclTypes:         types,
	})
	if err != nil {
		return nil, err
	}
	return set.Env(environment.NewExpressions)
}

var (
	parameterDialect = newDialect(cel.Variable("self", cel.StringType))
	valueDialect     = newDialect(cel.Variable(valueVariable, cel.DynType), cel.Variable(oldValueVariable, cel.DynType))
	requestDialect   = newRequestDialect()
)

// compile type-checks the expression and limits its cost to the limit of Kubernetes for one call. Loops check the context as often as in
// Kubernetes.
func (d dialect) compile(expression string, result *cel.Type) (cel.Program, error) {
	program, _, err := d.compileAST(expression, result)
	return program, err
}

// compileAST is compile, and also returns the compiled syntax tree.
func (d dialect) compileAST(expression string, result *cel.Type) (cel.Program, *cel.Ast, error) {
	env, err := d.env()
	if err != nil {
		return nil, nil, fmt.Errorf("CEL environment: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, fmt.Errorf("expression %q does not compile: %w", expression, issues.Err())
	}
	if out := ast.OutputType(); out != result && out != cel.DynType && !out.IsExactType(result) {
		return nil, nil, fmt.Errorf("expression %q yields %s: make it yield %s", expression, out, result)
	}
	program, err := env.Program(ast, cel.CostLimit(celconfig.PerCallLimit), cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.EvalOptions(cel.OptOptimize))
	return program, ast, err
}

func evalBool(ctx context.Context, program cel.Program, input any) (bool, error) {
	out, _, err := program.ContextEval(ctx, input)
	return boolOf(out, err)
}

// boolOf returns the result of an evaluation.
func boolOf(out ref.Val, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	value, ok := out.Value().(bool)
	if !ok {
		return false, errors.New("the result is no boolean")
	}
	return value, nil
}

func evalString(program cel.Program, self string) (string, bool) {
	out, _, err := program.Eval(map[string]any{"self": self})
	if err != nil {
		return "", false
	}
	value, ok := out.Value().(string)
	return value, ok
}

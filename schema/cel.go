package schema

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
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

// newRequestDialect returns a dialect that knows the fields of an admission request, as API servers do: without its objects. A misspelled
// field is then an error of the expression, not of each evaluation. more are further variables.
func newRequestDialect(more ...string) dialect {
	return dialect{env: sync.OnceValues(func() (*cel.Env, error) {
		request := plugincel.BuildRequestType()
		for _, name := range more {
			request.Fields[name] = apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil)
		}
		variables := []cel.EnvOption{cel.Variable(requestVariable, request.CelType())}
		for _, name := range more {
			variables = append(variables, cel.Variable(name, cel.DynType))
		}
		return newEnv([]*apiservercel.DeclType{request}, variables...)
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
	// objectsDialect has what a match condition of an UncoveredPermissionSet may not read and other conditions of Kubernetes may.
	objectsDialect = newRequestDialect("object", "oldObject", "params", "variables", "namespaceObject", "authorizer")
)

const (
	requestVariable  = "request"
	valueVariable    = "self"
	oldValueVariable = "oldSelf"
)

// compile type-checks the expression and limits its cost to the limit of Kubernetes for one call. Loops check the context as often as in
// Kubernetes.
func (d dialect) compile(expression string, result *cel.Type) (cel.Program, error) {
	env, err := d.env()
	if err != nil {
		return nil, fmt.Errorf("CEL environment: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("expression %q does not compile: %w", expression, issues.Err())
	}
	if out := ast.OutputType(); out != result && out != cel.DynType && !out.IsExactType(result) {
		return nil, fmt.Errorf("expression %q yields %s: make it yield %s", expression, out, result)
	}
	return env.Program(ast, cel.CostLimit(celconfig.PerCallLimit), cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.EvalOptions(cel.OptOptimize))
}

func evalBool(ctx context.Context, program cel.Program, input map[string]any) (bool, error) {
	out, _, err := program.ContextEval(ctx, input)
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

// Package cel has the CEL expressions of schemas: one environment and one cost limit, and a dialect for each use.
package cel

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

// Dialect is a CEL environment with Kubernetes' own libraries and the variables of one use.
type Dialect struct {
	env func() (*cel.Env, error)
}

// newDialect defers the cost of the environment (tens of milliseconds) to the first expression.
func newDialect(variables ...cel.EnvOption) Dialect {
	return Dialect{env: sync.OnceValues(func() (*cel.Env, error) { return newEnv(nil, variables...) })}
}

// newRequestDialect returns a dialect that knows the fields of an admission request, as API servers do: without its objects. A misspelled
// field is then an error of the expression, not of each evaluation. more are further variables.
func newRequestDialect(more ...string) Dialect {
	return Dialect{env: sync.OnceValues(func() (*cel.Env, error) {
		request := plugincel.BuildRequestType()
		for _, name := range more {
			request.Fields[name] = apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil)
		}
		variables := []cel.EnvOption{cel.Variable(RequestVariable, request.CelType())}
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
	// Parameter makes the parameter of a verb of a value.
	Parameter = newDialect(cel.Variable("self", cel.StringType))
	// Value is about the new and the old value of a scalar.
	Value = newDialect(cel.Variable(ValueVariable, cel.DynType), cel.Variable(OldValueVariable, cel.DynType))
	// Request is about a request without its objects.
	Request = newRequestDialect()
	// Objects has what a match condition of an UncoveredPermissionSet may not read and other conditions of Kubernetes may.
	Objects = newRequestDialect("object", "oldObject", "params", "variables", "namespaceObject", "authorizer")
)

// These are the variables of expressions.
const (
	RequestVariable  = "request"
	ValueVariable    = "self"
	OldValueVariable = "oldSelf"
)

// Compile type-checks the expression and limits its cost to the limit of Kubernetes for one call. Loops check the context as often as in
// Kubernetes.
func (d Dialect) Compile(expression string, result *cel.Type) (cel.Program, error) {
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

// Bool evaluates a condition.
func Bool(ctx context.Context, program cel.Program, input map[string]any) (bool, error) {
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

// String makes the parameter of a value. It reports false if the expression fails.
func String(program cel.Program, self string) (string, bool) {
	out, _, err := program.Eval(map[string]any{"self": self})
	if err != nil {
		return "", false
	}
	value, ok := out.Value().(string)
	return value, ok
}

package schema

import (
	"context"
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// dialect is the environment of one use, and what was compiled in it.
type dialect struct {
	// env defers the cost of the environment (tens of milliseconds) to the first expression.
	env      func() (*cel.Environment, error)
	programs *cel.Cache[*cel.Program]
}

// cached is in bytes of text. Catalogue, sets and definitions of a large cluster have less.
const cached = 64 << 10

func newDialect(types []*apiservercel.DeclType, variables ...celgo.EnvOption) dialect {
	return dialect{sync.OnceValues(func() (*cel.Environment, error) { return cel.NewEnvironment(types, variables...) }), cel.NewCache[*cel.Program](cached)}
}

// newRequestDialect returns a dialect that knows the fields of an admission request, as API servers do: without its objects. more are further
// variables, also as fields of the request.
func newRequestDialect(more ...string) dialect {
	var fields []*apiservercel.DeclField
	var variables []celgo.EnvOption
	for _, name := range more {
		fields = append(fields, apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil))
		variables = append(variables, celgo.Variable(name, celgo.DynType))
	}
	request := cel.RequestType(fields...)
	return newDialect([]*apiservercel.DeclType{request}, append(variables, celgo.Variable(requestVariable, request.CelType()))...)
}

var (
	parameterDialect = newDialect(nil, celgo.Variable(valueVariable, celgo.StringType))
	valueDialect     = newDialect(nil, celgo.Variable(valueVariable, celgo.DynType), celgo.Variable(oldValueVariable, celgo.DynType))
	requestDialect   = newRequestDialect()
	// objectsDialect has what a match condition of an UncoveredPermissionSet may not read and other conditions of Kubernetes may.
	objectsDialect = newRequestDialect("object", "oldObject", "params", "variables", "namespaceObject", "authorizer")
)

const (
	requestVariable  = "request"
	valueVariable    = "self"
	oldValueVariable = "oldSelf"
)

// compile returns the program of an expression. All expressions of a dialect yield the same type.
func (d dialect) compile(expression string, result *celgo.Type) (celgo.Program, error) {
	program, err := d.programs.Get(expression, func(string) (*cel.Program, error) {
		env, err := d.env()
		if err != nil {
			return nil, fmt.Errorf("CEL environment: %w", err)
		}
		return env.Compile(expression, result)
	})
	if failed := (*cel.Error)(nil); errors.As(err, &failed) {
		err = failed.In(expression)
	}
	if err != nil {
		return nil, err
	}
	return program, nil
}

func evalBool(ctx context.Context, program celgo.Program, input map[string]any) (bool, error) {
	return cel.Bool(ctx, program, input, nil)
}

func evalString(program celgo.Program, self string) (string, bool) {
	out, _, err := program.Eval(map[string]any{valueVariable: self})
	if err != nil {
		return "", false
	}
	value, ok := out.Value().(string)
	return value, ok
}

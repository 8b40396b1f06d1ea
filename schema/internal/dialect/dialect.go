// Package dialect has the uses of CEL in schemas and sets, each with its variables. internal/cel is the engine of all of them.
package dialect

import (
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// Dialect is the environment of one use, and what was compiled in it. It is safe for concurrent use.
type Dialect struct {
	// env defers the cost of the environment (tens of milliseconds) to the first expression.
	env      func() (*cel.Environment, error)
	programs *cel.Cache[*cel.Program]
}

// cached is in bytes of text. Catalogue, sets and definitions of a large cluster have less.
const cached = 64 << 10

func newDialect(types []*apiservercel.DeclType, variables ...celgo.EnvOption) Dialect {
	return Dialect{sync.OnceValues(func() (*cel.Environment, error) { return cel.NewEnvironment(types, variables...) }), cel.NewCache[*cel.Program](cached)}
}

// newRequestDialect returns a dialect that knows the fields of an admission request, as API servers do: without its objects. more are further
// variables, also as fields of the request.
func newRequestDialect(more ...string) Dialect {
	var fields []*apiservercel.DeclField
	var variables []celgo.EnvOption
	for _, name := range more {
		fields = append(fields, apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil))
		variables = append(variables, celgo.Variable(name, celgo.DynType))
	}
	request := cel.RequestType(fields...)
	return newDialect([]*apiservercel.DeclType{request}, append(variables, celgo.Variable(RequestVariable, request.CelType()))...)
}

var (
	// Parameter makes the parameter of a verb of a value.
	Parameter = newDialect(nil, celgo.Variable(ValueVariable, celgo.StringType))
	// Value is about the new and the old value of a scalar.
	Value = newDialect(nil, celgo.Variable(ValueVariable, celgo.DynType), celgo.Variable(OldValueVariable, celgo.DynType))
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

// Compile returns the program of an expression. All expressions of a dialect yield the same type.
func (d Dialect) Compile(expression string, result *celgo.Type) (celgo.Program, error) {
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

// String makes the parameter of a value. It reports false if the expression fails.
func String(program celgo.Program, self string) (string, bool) {
	out, _, err := program.Eval(map[string]any{ValueVariable: self})
	if err != nil {
		return "", false
	}
	value, ok := out.Value().(string)
	return value, ok
}

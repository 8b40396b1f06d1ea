package cel

import (
	"sync"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Environment has the libraries of Kubernetes and the variables of one use. It is immutable and safe for concurrent use.
type Environment struct {
	checked *celgo.Env
	// plain leaves macros as calls.
	plain func() (*celgo.Env, error)
}

// NewEnvironment takes tens of milliseconds. types are the types of the variables that have fields.
func NewEnvironment(types []*apiservercel.DeclType, variables ...celgo.EnvOption) (*Environment, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        variables,
		DeclTypes:         types,
	})
	if err != nil {
		return nil, err
	}
	checked, err := set.Env(environment.NewExpressions)
	if err != nil {
		return nil, err
	}
	return &Environment{checked, sync.OnceValues(func() (*celgo.Env, error) { return checked.Extend(celgo.ClearMacros()) })}, nil
}

// RequestType is the type of the request of ValidatingAdmissionPolicy, with more fields. A misspelled field is an error of the expression, not of each
// evaluation.
func RequestType(more ...*apiservercel.DeclField) *apiservercel.DeclType {
	out := plugincel.BuildRequestType()
	for _, field := range more {
		out.Fields[field.Name] = field
	}
	return out
}

// Declares reports whether a name stands for something without being a local variable.
func (e *Environment) Declares(name string) bool {
	_, issues := e.checked.Compile(name)
	return issues.Err() == nil
}

// Parse returns the syntax tree with macros as calls, so that it can be changed and printed.
func (e *Environment) Parse(source string) (*celgo.Ast, error) {
	plain, err := e.plain()
	if err != nil {
		return nil, err
	}
	out, issues := plain.Parse(source)
	if issues.Err() != nil {
		return nil, refused(issues)
	}
	return out, nil
}

package expression

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	celgo "github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// These are the variables of an expression.
const (
	// Object is the object of the request, null on DELETE.
	Object = "object"
	// OldObject is the stored object, null on CREATE.
	OldObject = "oldObject"
	// Request is the request of ValidatingAdmissionPolicy, and request.verb, the verb of the authorization request. An expression names a
	// field of it.
	Request = "request"
	// Options are the options of the operation.
	Options = "options"
	// Changes is the list of the changed fields; see ChangeList.
	Changes = "changes"
)

// verbField is the field of request that only the authorization phase knows.
const verbField = "verb"

// Types are the types of the object in the versions of a resource. Compiler.Types makes them. A nil *Types means that the type is not known.
type Types struct {
	versions []typedVersion
}

type typedVersion struct {
	name string
	env  *cel.Environment
}

// Types returns the types of the object from the OpenAPI schema of each version, for Compile. A version without a schema is an error.
func (c *Compiler) Types(versions map[string]*spec.Schema) (*Types, error) {
	out := &Types{}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if versions[name] == nil {
			return nil, fmt.Errorf("version %q has no schema: name versions that have one", name)
		}
		object := common.SchemaDeclType(&openapi.Schema{Schema: versions[name]}, true)
		if object == nil {
			return nil, fmt.Errorf("the schema of version %q has no type: use a structural schema", name)
		}
		env, err := newEnvironment(object.MaybeAssignTypeName("fieldperm.dev.Object"))
		if err != nil {
			return nil, fmt.Errorf("the schema of version %q does not fit CEL: %w", name, err)
		}
		out.versions = append(out.versions, typedVersion{name: name, env: env})
	}
	return out, nil
}

var untypedEnvironment = sync.OnceValues(func() (*cel.Environment, error) { return newEnvironment(nil) })

// newEnvironment returns an environment in which object and oldObject have the type; nil is dyn.
func newEnvironment(object *apiservercel.DeclType) (*cel.Environment, error) {
	request, change := cel.RequestType(apiservercel.NewDeclField(verbField, apiservercel.StringType, true, nil, nil)), changeType()
	types := []*apiservercel.DeclType{request, change}
	objectType := celgo.DynType
	if object != nil {
		types, objectType = append(types, object), object.CelType()
	}
	return cel.NewEnvironment(types,
		celgo.Variable(Object, objectType), celgo.Variable(OldObject, objectType), celgo.Variable(Request, request.CelType()),
		celgo.Variable(Options, celgo.DynType), celgo.Variable(Changes, celgo.ListType(change.CelType())))
}

func changeType() *apiservercel.DeclType {
	text := func(name string) *apiservercel.DeclField {
		return apiservercel.NewDeclField(name, apiservercel.StringType, true, nil, nil)
	}
	list := apiservercel.NewListType(apiservercel.StringType, -1)
	return apiservercel.NewObjectType("fieldperm.dev.Change", map[string]*apiservercel.DeclField{
		"path": text("path"), "operation": text("operation"), "verbs": apiservercel.NewDeclField("verbs", list, true, nil, nil),
	})
}

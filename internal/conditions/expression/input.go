package expression

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// Input is the data of one request for the conditions on it. Conditions that get the same Input convert the objects once, compute the changes
// at most once, and share one cost budget. It is safe for concurrent use, if the data is.
type Input struct {
	authorizer.ConditionsData
	verb string
	// changes yields the list for CEL, or an error value.
	changes            func() any
	object, old        func() any
	options, requested func() any
	budget             cel.Budget
}

// NewInput returns the input for conditions on one request. data must not change. verb is the verb of the authorization request; it may be
// empty if all expressions are residuals. changes is called when an expression reads the changes; nil means that they are not available, so
// that an expression that reads them is an error.
func NewInput(data authorizer.ConditionsData, verb string, changes func() (ChangeList, error)) *Input {
	if changes == nil {
		changes = func() (ChangeList, error) { return nil, nil }
	}
	in := &Input{ConditionsData: data, verb: verb}
	in.changes = sync.OnceValue(func() any {
		list, err := changes()
		if err != nil {
			return types.WrapErr(fmt.Errorf("changes: %w", err))
		}
		if list == nil {
			return types.WrapErr(errors.New("changes: are not available"))
		}
		return newChanges(list)
	})
	in.object = sync.OnceValue(func() any { return objectValue(data.GetObject()) })
	in.old = sync.OnceValue(func() any { return objectValue(data.GetOldObject()) })
	in.options = sync.OnceValue(func() any { return objectValue(data.GetOperationOptions()) })
	in.requested = sync.OnceValue(func() any { return requestOf(data, verb, in.options) })
	return in
}

// Valued is an object that has a CEL value of its own.
type Valued interface {
	runtime.Object
	CELValue() ref.Val
}

// objectValue returns the value of an object. An unstructured object is not copied. A typed object is converted once, because the lazy value
// of the library is not safe for concurrent use.
func objectValue(of runtime.Object) any {
	if of == nil || reflect.ValueOf(of).Kind() == reflect.Pointer && reflect.ValueOf(of).IsNil() {
		return types.NullValue
	}
	if v, ok := of.(Valued); ok {
		return v.CELValue()
	}
	if u, ok := of.(*unstructured.Unstructured); ok {
		return cel.Decoded(u.Object)
	}
	if _, ok := of.(*runtime.Unknown); ok {
		return types.NewErr("the object is not decoded")
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return types.WrapErr(fmt.Errorf("object: %w", err))
	}
	return cel.Decoded(content)
}

// requestOf returns the request as ValidatingAdmissionPolicy shows it: optional fields without a value are absent.
func requestOf(data authorizer.ConditionsData, verb string, options func() any) any {
	kind, resource := data.GetKind(), data.GetResource()
	k := map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
	out := map[string]any{
		"kind": k, "requestKind": k,
		"operation": string(data.GetOperation()), "dryRun": data.IsDryRun(), "options": options(),
	}
	addKnown(out, facts{
		verb: verb, group: resource.Group, version: resource.Version, resource: resource.Resource, subresource: data.GetSubresource(),
		namespace: data.GetNamespace(), name: data.GetName(), user: data.GetUserInfo(),
	})
	return types.DefaultTypeAdapter.NativeToValue(out)
}

// facts are the parts of a request that both phases have.
type facts struct {
	verb, group, version, resource, subresource, namespace, name string
	user                                                         user.Info
}

// addKnown adds the parts that both phases have, so that both have the same form.
func addKnown(out map[string]any, f facts) {
	r := map[string]any{"group": f.group, "version": f.version, "resource": f.resource}
	out["resource"], out["requestResource"] = r, r
	set := func(to map[string]any, name, value string) {
		if value != "" {
			to[name] = value
		}
	}
	set(out, verbField, f.verb)
	set(out, "subResource", f.subresource)
	set(out, "requestSubResource", f.subresource)
	set(out, "namespace", f.namespace)
	set(out, "name", f.name)
	who := map[string]any{}
	out["userInfo"] = who
	if f.user == nil {
		return
	}
	set(who, "username", f.user.GetName())
	set(who, "uid", f.user.GetUID())
	if groups := f.user.GetGroups(); len(groups) > 0 {
		who["groups"] = groups
	}
	if extra := f.user.GetExtra(); len(extra) > 0 {
		who["extra"] = extra
	}
}

// ResolveName implements the activation of cel-go.
func (in *activation) ResolveName(name string) (any, bool) {
	switch name {
	case Object:
		return in.object(), true
	case OldObject:
		return in.old(), true
	case Request:
		return in.requested(), true
	case Options:
		return in.options(), true
	case Changes:
		return in.changes(), true
	default:
		return nil, false
	}
}

// Parent implements the activation of cel-go.
func (in *activation) Parent() celgo.Activation { return nil }

// activation hides the methods of cel-go from the users of Input.
type activation Input

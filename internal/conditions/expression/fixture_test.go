package expression

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// request is the data of a request for a test.
type request struct {
	name, namespace, subresource string
	resource                     runtimeschema.GroupVersionResource
	operation                    string
	options                      runtime.Object
	dryRun                       bool
	object, old                  map[string]any
	user                         user.Info
}

func (r request) GetName() string                                 { return r.name }
func (r request) GetNamespace() string                            { return r.namespace }
func (r request) GetResource() runtimeschema.GroupVersionResource { return r.resource }
func (r request) GetSubresource() string                          { return r.subresource }
func (r request) GetOperation() authorizer.AdmissionOperation {
	return authorizer.AdmissionOperation(r.operation)
}
func (r request) GetOperationOptions() runtime.Object { return r.options }
func (r request) IsDryRun() bool                      { return r.dryRun }
func (r request) GetObject() runtime.Object           { return content(r.object) }
func (r request) GetOldObject() runtime.Object        { return content(r.old) }
func (r request) GetKind() runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: r.resource.Group, Version: r.resource.Version, Kind: "Widget"}
}
func (r request) GetUserInfo() user.Info { return r.user }

func content(of map[string]any) runtime.Object {
	if of == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: of}
}

func newCompiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t testing.TB, source string) *Expression {
	t.Helper()
	e, err := newCompiler(t).Compile(source, nil)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return e
}

var widgets = runtimeschema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// update is an update of a Widget by alice.
func update() (request, Known) {
	alice := &user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"dev", "system:authenticated"}, Extra: map[string][]string{"example.com/team": {"blue"}}}
	r := request{
		name: "w", namespace: "default", resource: widgets, operation: "UPDATE", user: alice, options: &metav1.UpdateOptions{FieldManager: "kubectl"},
		object: map[string]any{"spec": map[string]any{"replicas": int64(3), "owner": "alice"}},
		old:    map[string]any{"spec": map[string]any{"replicas": int64(2), "owner": "alice"}},
	}
	return r, Known{User: alice, Verb: "update", Group: "example.com", Version: "v1", Resource: "widgets", Namespace: "default", Name: "w"}
}

// made is a change that is made already.
type made struct {
	Path, Operation string
	Verbs           []string
}

// listed is a list of changes that are made already.
type listed []made

func (l listed) Len() int               { return len(l) }
func (l listed) Path(i int) string      { return l[i].Path }
func (l listed) Operation(i int) string { return l[i].Operation }
func (l listed) Verbs(i int) []string   { return l[i].Verbs }

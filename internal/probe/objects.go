package probe

import (
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/admission"
)

// maxObjects bounds the number of resources for which an object is stored.
const maxObjects = 4096

// Objects stores the name of one object of each resource, learned from the requests that the webhooks receive: fieldperm may not
// read the objects of users. The zero Objects is ready to use.
type Objects struct {
	mu    sync.RWMutex
	known map[runtimeschema.GroupResource]types.NamespacedName
	// learned is called when the first object of a resource becomes known. It must not block.
	learned func()
}

// NewObjects returns Objects with the objects that every kube-apiserver creates when it starts.
func NewObjects() *Objects {
	in := func(group, resource, namespace, name string) (runtimeschema.GroupResource, types.NamespacedName) {
		return runtimeschema.GroupResource{Group: group, Resource: resource}, types.NamespacedName{Namespace: namespace, Name: name}
	}
	out := &Objects{known: map[runtimeschema.GroupResource]types.NamespacedName{}}
	for _, one := range [][4]string{
		{"", "configmaps", "kube-system", "extension-apiserver-authentication"},
		{"", "namespaces", "", "kube-system"},
		{"", "services", "default", "kubernetes"},
		{"apiregistration.k8s.io", "apiservices", "", "v1.apps"},
		{"flowcontrol.apiserver.k8s.io", "flowschemas", "", "exempt"},
		{"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "", "exempt"},
		{"networking.k8s.io", "servicecidrs", "", "kubernetes"},
		{"rbac.authorization.k8s.io", "clusterroles", "", "cluster-admin"},
	} {
		resource, name := in(one[0], one[1], one[2], one[3])
		out.known[resource] = name
	}
	return out
}

// Saw records the object of a request if the request shows that the object exists. It stores only the names.
func (o *Objects) Saw(req *admissionv1.AdmissionRequest) {
	dry := req.DryRun != nil && *req.DryRun
	made := req.Operation == admissionv1.Create && req.SubResource == "" && !dry
	stays := req.Operation == admissionv1.Delete && dry
	if req.Name == "" || req.Operation != admissionv1.Update && !made && !stays {
		return
	}
	requested := admission.RequestedResource(req)
	resource := runtimeschema.GroupResource{Group: requested.Group, Resource: requested.Resource}
	name := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
	if resource == namespaces {
		name.Namespace = ""
	}
	if has, known := o.Of(resource); known && (!isImmortal(resource, has) || isImmortal(resource, name)) {
		return
	}
	o.mu.Lock()
	_, replaced := o.known[resource]
	known := replaced || len(o.known) < maxObjects
	if known {
		if o.known == nil {
			o.known = map[runtimeschema.GroupResource]types.NamespacedName{}
		}
		o.known[resource] = name
	}
	o.mu.Unlock()
	if known && o.learned != nil {
		o.learned()
	}
}

// Of returns an object of a resource. It returns false if none is known.
func (o *Objects) Of(resource runtimeschema.GroupResource) (types.NamespacedName, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	name, known := o.known[resource]
	return name, known
}

// Forget removes an object that does not exist any more.
func (o *Objects) Forget(resource runtimeschema.GroupResource, name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.known[resource] != name:
	case resource == namespaces:
		o.known[resource] = types.NamespacedName{Name: metav1.NamespaceSystem}
	default:
		delete(o.known, resource)
	}
}

// namespaces is the resource of Namespaces.
var namespaces = runtimeschema.GroupResource{Resource: "namespaces"}

// isImmortal reports whether the API server refuses the deletion of an object before it calls webhooks. Another one is better to know.
func isImmortal(resource runtimeschema.GroupResource, name types.NamespacedName) bool {
	return resource == namespaces && slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}, name.Name)
}

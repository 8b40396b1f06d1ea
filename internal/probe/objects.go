package probe

import (
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
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
	made := req.Operation == admissionv1.Create && req.SubResource == "" && (req.DryRun == nil || !*req.DryRun)
	if req.Name == "" || req.Operation != admissionv1.Update && !made {
		return
	}
	requested := admission.RequestedResource(req)
	resource := runtimeschema.GroupResource{Group: requested.Group, Resource: requested.Resource}
	if _, known := o.Of(resource); known {
		return
	}
	o.mu.Lock()
	known := len(o.known) < maxObjects
	if known {
		if o.known == nil {
			o.known = map[runtimeschema.GroupResource]types.NamespacedName{}
		}
		name := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
		if resource.Group == "" && resource.Resource == "namespaces" {
			name.Namespace = ""
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
	if o.known[resource] == name {
		delete(o.known, resource)
	}
}

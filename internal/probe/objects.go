package probe

import (
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/admission"
)

// maxObjects bounds how many resources one object each is remembered of.
const maxObjects = 4096

// Objects knows the name of one object of each resource, from what the webhooks are asked about: fieldperm may read no
// object of users. The zero Objects is ready to use.
type Objects struct {
	mu    sync.RWMutex
	known map[runtimeschema.GroupResource]types.NamespacedName
	// learned is told that an object is known of a resource of which none was; it must not block.
	learned func()
}

// NewObjects returns Objects that know what every kube-apiserver makes at its start.
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

// Saw notes that there is an object, if the request says so. It keeps nothing of the request but the names.
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

// Of returns an object of a resource.
func (o *Objects) Of(resource runtimeschema.GroupResource) (types.NamespacedName, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	name, known := o.known[resource]
	return name, known
}

// Forget is for an object that is not there any more.
func (o *Objects) Forget(resource runtimeschema.GroupResource, name types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[resource] == name {
		delete(o.known, resource)
	}
}

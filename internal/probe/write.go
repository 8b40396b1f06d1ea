package probe

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/probe/sampleobject"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// write is the request for an endpoint.
type write struct {
	target interlock.Target
	// body is the object of a CREATE.
	body map[string]any
}

// errNoObject means that the endpoint needs an object that exists, and none is known.
var errNoObject = errors.New("not probed, because it takes an object that exists, and none is known yet: have a user outside of system:masters write one; a dry run will do")

// errNothingDeleted is errNoObject for a deletion.
var errNothingDeleted = errors.New("not probed, because it takes an object that exists, and none is known yet: have a user outside of system:masters delete one as a dry run")

// errElsewhere means that an aggregated API server serves the resource.
var errElsewhere = errors.New("not probed, because kube-apiserver itself does not serve the resource: there a barrier holds only if the server that does asks fieldperm")

// served reports whether this cluster serves an endpoint.
func served(list *allowlist.List, e *endpoint.Endpoint) bool {
	switch {
	case endpoint.IsBinding(e.Group, e.Resource, e.Subresource), endpoint.IsConnection(e.Group, e.Resource, e.Subresource):
		return list.Has("", "pods", "")
	case e.Subresource == "":
		return list.Has(e.Group, e.Resource, "")
	}
	return list.Has(e.Group, e.Resource, e.Subresource)
}

// unsent returns why no probe can be sent.
func unsent(e *endpoint.Endpoint, list *allowlist.List, operation interlock.Operation) error {
	how, _ := list.Served(e.Group, e.Resource)
	switch {
	case operation != admissionv1.Delete:
		return errNoObject
	case how.Aggregated:
		return errElsewhere
	}
	return errNothingDeleted
}

// deletion returns the deletion of a known object, none if there is none. Another server than kube-apiserver gets no deletion, because it may
// not know dry runs.
func deletion(e *endpoint.Endpoint, list *allowlist.List, objects *Objects) []write {
	how, _ := list.Served(e.Group, e.Resource)
	name, known := objects.Of(e.GroupResource())
	if !known || how.Aggregated || e.Subresource != "" || isImmortal(e.GroupResource(), name) {
		return nil
	}
	return []write{{target: interlock.Target{Operation: admissionv1.Delete, Group: e.Group, Version: how.Version, Resource: e.Resource, Namespace: name.Namespace, Name: name.Name}}}
}

// connection returns a connection to a Pod that does not exist, because it cannot be a dry run.
func connection(e *endpoint.Endpoint, namespace string) []write {
	return []write{{target: interlock.Target{Operation: admissionv1.Connect, Version: "v1", Resource: e.Resource, Subresource: e.Subresource, Namespace: namespace, Name: interlock.Name}}}
}

// writes returns the requests for an endpoint, in the order in which to try them. For writes these are an empty patch of a known object, which
// is valid for every kind, then the creation of a sample. namespace is the namespace for samples.
func writes(e *endpoint.Endpoint, operation interlock.Operation, list *allowlist.List, objects *Objects, namespace string) []write {
	switch {
	case operation == admissionv1.Delete:
		return deletion(e, list, objects)
	case operation == admissionv1.Connect:
		return connection(e, namespace)
	case endpoint.IsBinding(e.Group, e.Resource, e.Subresource):
		return []write{binding(e, namespace)}
	}
	how, _ := list.Served(e.Group, e.Resource)
	target := interlock.Target{Group: e.Group, Version: how.Version, Resource: e.Resource, Subresource: e.Subresource}
	var out []write
	if name, known := objects.Of(e.GroupResource()); known && e.Updates() {
		update := target
		update.Operation, update.Namespace, update.Name = admissionv1.Update, name.Namespace, name.Name
		out = append(out, write{target: update})
	}
	if e.Subresource != "" || !e.Creates() {
		return out
	}
	gvk := runtimeschema.GroupVersionKind{Group: e.Group, Version: how.Version, Kind: how.Kind}
	body, err := sampleobject.BuiltIn(gvk)
	if err != nil {
		// This is valid for a kind without required fields.
		body = map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": map[string]any{}}
	}
	create := target
	create.Operation = admissionv1.Create
	if how.Namespaced {
		create.Namespace = namespace
	}
	sampleobject.Place(body, interlock.Name, create.Namespace)
	return append(out, write{create, body})
}

// binding returns a Binding for a Pod that need not exist: admission runs before the API server looks for the Pod.
func binding(e *endpoint.Endpoint, namespace string) write {
	target := interlock.Target{Operation: admissionv1.Create, Version: "v1", Resource: e.Resource, Subresource: e.Subresource, Namespace: namespace}
	if e.Subresource != "" {
		target.Name = interlock.Name
	}
	return write{target, map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": interlock.Name, "namespace": namespace},
		"target": map[string]any{"kind": "Node", "name": interlock.Name},
	}}
}

// object returns the object of an update.
func (w *write) object() (runtimeschema.GroupResource, types.NamespacedName) {
	return runtimeschema.GroupResource{Group: w.target.Group, Resource: w.target.Resource}, types.NamespacedName{Namespace: w.target.Namespace, Name: w.target.Name}
}

// NameOf returns the name of an endpoint in the form of kubectl: deployments/scale.apps.
func NameOf(e *endpoint.Endpoint) string {
	if e.Group == "" {
		return e.Name()
	}
	return fmt.Sprintf("%s.%s", e.Name(), e.Group)
}

// nameOf returns the name of an endpoint with its operation, if that is no write.
func nameOf(e *endpoint.Endpoint, operation interlock.Operation) string {
	switch operation {
	case admissionv1.Delete:
		return "deletions of " + NameOf(e)
	case admissionv1.Connect:
		return "connections by " + NameOf(e)
	case admissionv1.Create, admissionv1.Update:
	}
	return NameOf(e)
}

// namespaceBut returns a namespace that every cluster has and that is not skipped.
func namespaceBut(skipped string) string {
	if skipped == metav1.NamespaceDefault {
		return metav1.NamespaceSystem
	}
	return metav1.NamespaceDefault
}

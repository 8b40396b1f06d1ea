package interlock

import (
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Operation is the operation of an admission request.
type Operation = admissionv1.Operation

// Target is the write that a probe makes, and that its nonce is valid for.
type Target struct {
	Operation Operation
	// Version is the requested version: the webhook's rules may match only one version.
	Group, Version, Resource, Subresource string
	Namespace                             string
	// Name is empty in a CREATE, because authorization does not know the name.
	Name string
}

// operationOf returns the admission operation of a request, "" if it is none that /authorize may allow.
func operationOf(a *authorizationv1.ResourceAttributes) Operation {
	switch {
	case a.Verb == "create" && endpoint.IsConnection(a.Group, a.Resource, a.Subresource):
		return admissionv1.Connect
	case a.Verb == "create":
		return admissionv1.Create
	case a.Verb == "update", a.Verb == "patch":
		return admissionv1.Update
	case a.Verb == "delete", a.Verb == "deletecollection":
		return admissionv1.Delete
	}
	return ""
}

// reviewed returns the target of a SubjectAccessReview. It returns false for a verb that probes do not use.
func reviewed(a *authorizationv1.ResourceAttributes) (Target, bool) {
	t := Target{
		Operation: operationOf(a), Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace,
	}.normal()
	switch {
	case t.Operation == admissionv1.Create:
		return t, true
	case a.Verb == "patch":
		t.Name = a.Name
		return t, true
	}
	return Target{}, false
}

// admitted returns the target of an admission request, as the sender addressed it.
func admitted(req *admissionv1.AdmissionRequest) (Target, bool) {
	r := admission.RequestedResource(req)
	t := Target{Operation: req.Operation, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource, Namespace: req.Namespace}.normal()
	switch req.Operation {
	case admissionv1.Create:
	case admissionv1.Update:
		t.Name = req.Name
	default:
		return Target{}, false
	}
	return t, true
}

// normal removes the namespace of a Namespace: authorization attributes have it, an admission request may not have it.
func (t Target) normal() Target {
	if t.Group == "" && t.Resource == "namespaces" {
		t.Namespace = ""
	}
	return t
}

// maxSegment is longer than any name that Kubernetes uses in practice. It bounds the memory for proofs, whose keys contain names.
const maxSegment = 1024

// addressable reports whether every part is one segment of a path. A SubjectAccessReview may have any text in these fields: the
// probe for a name like "../b" would be sent to b. No request for such a name exists.
func (t Target) addressable() bool {
	for _, segment := range []string{t.Group, t.Version, t.Resource, t.Subresource, t.Namespace, t.Name} {
		if len(segment) > maxSegment || len(content.IsPathSegmentName(segment)) > 0 {
			return false
		}
	}
	return true
}

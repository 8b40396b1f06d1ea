package interlock

import (
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/fieldperm/fieldperm/admission"
)

// Operation is what admission calls a write.
type Operation = admissionv1.Operation

// Target is what a canary writes, and what its nonce is good for.
type Target struct {
	Operation Operation
	// Version is the one that was asked for: the webhook's rules may be for another alone.
	Group, Version, Resource, Subresource string
	Namespace                             string
	// Name is empty in the nonce of a CREATE: it is not known when the request is authorized. A subresource is
	// created of the object of that name all the same.
	Name string
}

// reviewed returns the target of a SubjectAccessReview. Only verbs that canaries have are known.
func reviewed(a *authorizationv1.ResourceAttributes) (Target, bool) {
	t := Target{Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace}.normal()
	switch {
	case a.Verb == "create":
		t.Operation = admissionv1.Create
	case a.Verb == "patch", a.Verb == "update" && t.put():
		t.Operation, t.Name = admissionv1.Update, a.Name
	default:
		return Target{}, false
	}
	return t, true
}

// admitted returns the target of an admission request, as the sender addressed it.
func admitted(req *admissionv1.AdmissionRequest) (Target, bool) {
	r := admission.RequestedResource(req)
	t := Target{Operation: req.Operation, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource, Namespace: req.Namespace}.normal()
	switch req.Operation {
	case admissionv1.Create:
	case admissionv1.Update:
		t.Name = req.Name
	case admissionv1.Delete, admissionv1.Connect:
		return Target{}, false
	default:
		return Target{}, false
	}
	return t, true
}

// normal takes away the namespace of a namespace, which authorization has and admission need not.
func (t Target) normal() Target {
	if t.Group == "" && t.Resource == "namespaces" {
		t.Namespace = ""
	}
	return t
}

// maxSegment is more than any name that Kubernetes gives or takes in practice. Proofs are remembered by it.
const maxSegment = 1024

// addressable reports whether every part is one segment of a path. A review may have any text there: the
// canary of a name like "../b" would be sent to b, and no request for such a name exists.
func (t Target) addressable() bool {
	for _, segment := range []string{t.Group, t.Version, t.Resource, t.Subresource, t.Namespace, t.Name} {
		if len(segment) > maxSegment || len(content.IsPathSegmentName(segment)) > 0 {
			return false
		}
	}
	return true
}

// put reports whether the target can be updated by PUT only. It is the one such subresource that
// /authorize lets anybody write.
func (t Target) put() bool {
	return t.Group == "" && t.Resource == "namespaces" && t.Subresource == "finalize"
}

package endpoint

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Endpoint is a resource or a subresource that clients can write to. The zero Endpoint writes nothing.
type Endpoint struct {
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Versions are the API versions that serve it.
	Versions []string `json:"versions,omitempty"`
	// Body is the kind of the request's body.
	Body Kind `json:"body"`
	// Operations are the admission operations of its requests: CREATE, UPDATE, or both; or CONNECT.
	Operations []string `json:"operations"`
	// Storage identifies where the API server stores the object that the endpoint writes. Resources with the same Storage are one object
	// under several names. It is empty if the endpoint writes no object.
	Storage string `json:"storage,omitempty"`
	// Whole means that the body is the whole object. Fields then has only the fields that have another name in storage.
	Whole bool `json:"whole,omitempty"`
	// Fields are the fields of the body that reach the stored object.
	Fields []Field `json:"fields,omitempty"`
	// Refused are fields of the body for which the API server refused every value that was tried. There is no evidence that it would
	// ignore other values, so Reaches counts these fields.
	Refused []string `json:"refused,omitempty"`
	// Sets are fields of the stored object that the API server sets or changes on a write to this endpoint, and that do not come from the
	// body.
	Sets []string `json:"sets,omitempty"`
	// Deletes means that the object no longer existed after a request.
	Deletes bool `json:"deletes,omitempty"`
	// Note is the reason why an endpoint stores nothing or could not be tested.
	Note string `json:"note,omitempty"`
}

// Kind is the kind of a body, without its version.
type Kind struct{ Group, Kind string }

// Field is a field of a body and the field of the stored object that it becomes, both with everything below. Paths have the form of
// permission schemas: .spec.replicas, .spec.containers[*].image. "" is the object itself.
type Field struct {
	From string
	// To is the field of the stored object; empty means that it equals From.
	To string
}

// Stored returns the path in the stored object.
func (f Field) Stored() string {
	if f.To == "" {
		return f.From
	}
	return f.To
}

// GroupResource returns the endpoint's resource, without its subresource.
func (e *Endpoint) GroupResource() runtimeschema.GroupResource {
	return runtimeschema.GroupResource{Group: e.Group, Resource: e.Resource}
}

// GroupKind returns the kind of the body.
func (e *Endpoint) GroupKind() runtimeschema.GroupKind {
	return runtimeschema.GroupKind{Group: e.Body.Group, Kind: e.Body.Kind}
}

// Name returns the resource with its subresource, as in rules of roles and webhooks.
func (e *Endpoint) Name() string { return Ref{e.Group, e.Resource, e.Subresource}.Name() }

// Creates reports whether admission sees requests to the endpoint as CREATE.
func (e *Endpoint) Creates() bool { return slices.Contains(e.Operations, create) }

// Updates reports whether admission sees requests to the endpoint as UPDATE, with an old and a new object.
func (e *Endpoint) Updates() bool { return slices.Contains(e.Operations, update) }

// markerless are the groups that the marker never opens: the objects of review APIs are not stored, and admission webhooks are not called for the
// objects of admission registration (A2).
var markerless = []string{"authorization.k8s.io", "authentication.k8s.io", "admissionregistration.k8s.io"}

// TakesMarker reports whether the marker may let a write of a resource or subresource in, so that granular verbs can cover its changes (A2): the
// resource is stored as it is sent, or the subresource updates the stored object, so that admission sees the old and the new one. All other
// subresources (binding, eviction, token, exec, …) do something else. The effect of a subresource is unknown unless a run has shown it.
func TakesMarker(group, resource, subresource string) bool {
	own, ok := Lookup(group, resource, "")
	if slices.Contains(markerless, group) || !ok || !own.Whole {
		return false
	}
	if subresource == "" {
		return true
	}
	e, ok := Lookup(group, resource, subresource)
	return ok && e.Storage != "" && e.Updates() && !e.Creates()
}

// Connections returns the subresources by which a client connects to a Pod, with CONNECT as their admission operation. Whatever the HTTP method,
// kube-apiserver asks for the verb create on them, since version 1.35 (the gate AuthorizePodWebsocketUpgradeCreatePermission). For the proxy
// subresources it asks for the verb of the method only, which admission does not see.
func Connections() []Ref {
	return []Ref{{Resource: "pods", Subresource: "attach"}, {Resource: "pods", Subresource: "exec"}, {Resource: "pods", Subresource: "portforward"}}
}

// IsConnection reports whether an endpoint is one of Connections.
func IsConnection(group, resource, subresource string) bool {
	return slices.Contains(Connections(), Ref{Group: group, Resource: resource, Subresource: subresource})
}

// ChangesUnseen reports whether requests to the endpoint change a stored object that they do not show: admission sees them as CREATE, and
// fields of their body become fields of an existing object.
func (e *Endpoint) ChangesUnseen() bool {
	return e.Creates() && !e.Whole && e.Storage != "" && len(e.Fields) > 0
}

// StatusOnCreate reports whether the API server stores the status of a new object of a built-in resource that has the subresource status.
// For all others it drops the status in writes of the object. test/fields observes this.
func StatusOnCreate(group, resource string) bool {
	return group == "" && resource == "nodes"
}

// ChangesOwners reports whether the endpoint changes owners of fields that it does not write. If the body is the object, the API server
// records owners before the strategy reverts the fields that the endpoint may not write. On the status endpoint it records only owners in
// the status.
func (e *Endpoint) ChangesOwners() bool {
	own, known := Lookup(e.Group, e.Resource, "")
	return e.Subresource != "status" && len(e.Fields)+len(e.Refused) > 0 && (e.Body.Kind == "" || e.Body.Kind == "*" || known && own.GroupKind() == e.GroupKind())
}

const (
	create = "CREATE"
	update = "UPDATE"
)

// Reaches reports whether a request to the endpoint may change a field of the stored object, a part of it, or a value that contains it.
// The path is one of the stored object.
func (e *Endpoint) Reaches(path string) bool {
	if e.Storage == "" {
		return false
	}
	if e.Whole {
		return true
	}
	for _, f := range e.Fields {
		if overlap(path, f.Stored()) {
			return true
		}
	}
	return slices.ContainsFunc(e.Refused, func(refused string) bool { return overlap(path, refused) })
}

// overlap reports whether one path equals or contains the other. All steps in brackets are equal: a barrier may name one of the items
// that an observation records as [*].
func overlap(a, b string) bool {
	x, y := steps(a), steps(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] && (x[i][0] != '[' || y[i][0] != '[') {
			return false
		}
	}
	return true
}

// steps splits a path: ".spec.x[*]" is ".spec", ".x", "[*]".
func steps(path string) []string {
	var out []string
	for path != "" {
		end := len(path)
		if path[0] == '[' {
			if i := strings.IndexByte(path, ']'); i >= 0 {
				end = i + 1
			}
		} else if i := strings.IndexAny(path[1:], ".["); i >= 0 {
			end = i + 1
		}
		out = append(out, path[:end])
		path = path[end:]
	}
	return out
}

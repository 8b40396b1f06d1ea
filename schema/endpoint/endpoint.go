package endpoint

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Endpoint is a resource or a subresource that can be written to. The zero Endpoint writes nothing.
type Endpoint struct {
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Versions are those that serve it.
	Versions []string `json:"versions,omitempty"`
	// Body is the kind of the request's body.
	Body Kind `json:"body"`
	// Operations are what admission calls its requests: CREATE, UPDATE, both.
	Operations []string `json:"operations"`
	// Storage is where the object is kept that the endpoint writes: resources with the same are one object under
	// several names. Empty if it writes none.
	Storage string `json:"storage,omitempty"`
	// Whole is that the body is the object, all of it. Fields names only what is called differently then.
	Whole bool `json:"whole,omitempty"`
	// Fields are what gets through from the body into the stored object.
	Fields []Field `json:"fields,omitempty"`
	// Refused are fields of the body of which every value that was tried was refused: nothing shows that the API server
	// would take them back.
	Refused []string `json:"refused,omitempty"`
	// Sets are fields of the stored object that the API server sets or changes when it is written to by this endpoint,
	// and that are not the body's.
	Sets []string `json:"sets,omitempty"`
	// Deletes is that the object was gone after a request.
	Deletes bool `json:"deletes,omitempty"`
	// Note says why an endpoint stores nothing, or could not be exercised.
	Note string `json:"note,omitempty"`
}

// IsBinding reports whether an endpoint places a Pod: it creates a Binding, which is stored nowhere, and writes into the
// Pod without asking whoever is asked about Pods.
func IsBinding(group, resource, subresource string) bool {
	e, ok := Lookup(group, resource, subresource)
	return ok && e.Body == Kind{Kind: "Binding"} && e.Storage != ""
}

// Kind is the kind of a body, without its version.
type Kind struct{ Group, Kind string }

// Field is a field of a body and the field of the stored object that it becomes, with everything below. Paths are as in
// permission schemas: .spec.replicas, .spec.containers[*].image. "" is the object itself.
type Field struct {
	From string
	// To is From if it is empty.
	To string
}

// Stored returns the field of the stored object.
func (f Field) Stored() string {
	if f.To == "" {
		return f.From
	}
	return f.To
}

// GroupResource is the endpoint's resource, without its subresource.
func (e *Endpoint) GroupResource() runtimeschema.GroupResource {
	return runtimeschema.GroupResource{Group: e.Group, Resource: e.Resource}
}

// GroupKind is the kind of the body.
func (e *Endpoint) GroupKind() runtimeschema.GroupKind {
	return runtimeschema.GroupKind{Group: e.Body.Group, Kind: e.Body.Kind}
}

// Name is the resource with its subresource, as rules of roles and webhooks have it.
func (e *Endpoint) Name() string {
	if e.Subresource == "" {
		return e.Resource
	}
	return e.Resource + "/" + e.Subresource
}

// Creates and Updates report what the endpoint's requests are to admission.
func (e *Endpoint) Creates() bool { return slices.Contains(e.Operations, create) }

// Updates reports whether admission sees requests to the endpoint as UPDATE, with an old and a new object.
func (e *Endpoint) Updates() bool { return slices.Contains(e.Operations, update) }

const (
	create = "CREATE"
	update = "UPDATE"
)

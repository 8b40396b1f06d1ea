package endpoint

import (
	"slices"
	"strings"

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
	// would take them back. Reaches counts them.
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

// ChangesUnseen reports whether the endpoint's requests change a stored object that they do not show: they are CREATE to
// admission, and fields of their body become fields of an object that is there already.
func (e *Endpoint) ChangesUnseen() bool {
	return e.Creates() && !e.Whole && e.Storage != "" && len(e.Fields) > 0
}

// ChangesOwners reports whether the endpoint changes who owns fields that it does not write. Where the body is the object, the API
// server records owners before the strategy takes back what the endpoint may not write. Of a status it records those of the
// status alone.
func (e *Endpoint) ChangesOwners() bool {
	own, known := Lookup(e.Group, e.Resource, "")
	return e.Subresource != "status" && len(e.Fields)+len(e.Refused) > 0 && (e.Body.Kind == "" || e.Body.Kind == "*" || known && own.GroupKind() == e.GroupKind())
}

const (
	create = "CREATE"
	update = "UPDATE"
)

// Reaches reports whether a request to the endpoint may change a field of the stored object, a part of it, or something
// that it is a part of. The path is one of the stored object.
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

// overlap reports whether one path leads to or into the other. Steps in brackets are alike: a barrier may name one of the
// items that an observation has as [*].
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

package endpoint

import (
	_ "embed" // The import embeds observed.yaml.
	"fmt"
	"slices"
	"strings"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed observed.yaml
var observedYAML []byte

// Observation is the result of one observed run, the content of observed.yaml.
type Observation struct {
	// APIServer is the version of the API server.
	APIServer string `json:"apiServer"`
	// Endpoints are the endpoints of built-in resources, sorted by group, resource and subresource.
	Endpoints []Endpoint `json:"endpoints"`
	// Custom are the endpoints of a custom resource, with "*" as Resource and Storage.
	Custom []Endpoint `json:"custom"`
}

// SpecReplicas is the placeholder in Custom for the specReplicasPath of a CustomResourceDefinition.
const SpecReplicas = "{specReplicasPath}"

// anyResource is the placeholder in Custom for the resource.
const anyResource = "*"

type key struct{ group, resource, subresource string }

type index struct {
	Observation
	endpoints map[key]*Endpoint
	custom    map[string]*Endpoint
	storages  map[string]*storage
	aliases   map[key][]Ref
}

// Ref names an endpoint.
type Ref struct{ Group, Resource, Subresource string }

// Name returns the resource with its subresource, as in rules of roles and webhooks.
func (r Ref) Name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// storage is one place where objects are kept.
type storage struct {
	class   []runtimeschema.GroupResource
	writers []Endpoint
}

// observed is the embedded Observation. The file is generated, and a test proves that it decodes.
var observed = sync.OnceValue(func() *index {
	out, err := decode(observedYAML)
	if err != nil {
		panic(fmt.Sprintf("schema/endpoint/observed.yaml: %v", err))
	}
	return out
})

func decode(content []byte) (*index, error) {
	out := &index{endpoints: map[key]*Endpoint{}, custom: map[string]*Endpoint{}, storages: map[string]*storage{}, aliases: map[key][]Ref{}}
	if err := yaml.UnmarshalStrict(content, &out.Observation); err != nil {
		return nil, err
	}
	for i := range out.Endpoints {
		e := &out.Endpoints[i]
		at := key{e.Group, e.Resource, e.Subresource}
		if e.Resource == "" || out.endpoints[at] != nil {
			return nil, fmt.Errorf("endpoint %+v: is there twice, or has no resource", at)
		}
		out.endpoints[at] = e
		if e.Storage == "" {
			continue
		}
		s := out.storages[e.Storage]
		if s == nil {
			s = &storage{}
			out.storages[e.Storage] = s
		}
		s.writers = append(s.writers, *e)
		if e.Whole && e.Subresource == "" {
			s.class = append(s.class, e.GroupResource())
		}
	}
	for _, s := range out.storages {
		for i := range s.writers {
			for j := range s.writers {
				if a, b := &s.writers[i], &s.writers[j]; i != j && a.alike(b) {
					at := key{a.Group, a.Resource, a.Subresource}
					out.aliases[at] = append(out.aliases[at], Ref{b.Group, b.Resource, b.Subresource})
				}
			}
		}
	}
	for i := range out.Custom {
		out.custom[out.Custom[i].Subresource] = &out.Custom[i]
	}
	return out, nil
}

// APIServer returns the version of the observed API server.
func APIServer() string { return observed().APIServer }

// All returns the endpoints of built-in resources, sorted by group, resource and subresource. Callers must not change them.
func All() []Endpoint { return slices.Clip(observed().Endpoints) }

// Custom returns the endpoints that a custom resource can have, with "*" as Resource and SpecReplicas as the path of its replicas.
func Custom() []Endpoint { return slices.Clone(observed().Custom) }

// Lookup returns an endpoint, and false if it is not known. A resource that is not built in counts as a custom resource.
func Lookup(group, resource, subresource string) (Endpoint, bool) {
	o := observed()
	if e := o.endpoints[key{group, resource, subresource}]; e != nil {
		return *e, true
	}
	if BuiltIn(group, resource) {
		return Endpoint{}, false
	}
	e := o.custom[subresource]
	if e == nil {
		return Endpoint{}, false
	}
	return e.of(group, resource), true
}

// of returns the endpoint for one custom resource.
func (e *Endpoint) of(group, resource string) Endpoint {
	out := *e
	out.Group, out.Resource, out.Storage = group, resource, group+"/"+resource
	if out.Body.Kind == anyResource {
		// Only the definition knows the kind.
		out.Body = Kind{Group: group}
	}
	return out
}

// BuiltIn reports whether a resource was observed, which means that it is built in.
func BuiltIn(group, resource string) bool {
	return observed().endpoints[key{group, resource, ""}] != nil
}

// Class returns all resources that are one object under several names, sorted by name. A resource with a single name is alone in its
// class.
func Class(group, resource string) []runtimeschema.GroupResource {
	o := observed()
	if e := o.endpoints[key{group, resource, ""}]; e != nil && e.Whole && e.Storage != "" {
		return slices.Clone(o.storages[e.Storage].class)
	}
	return []runtimeschema.GroupResource{{Group: group, Resource: resource}}
}

// alike reports whether two endpoints of one storage do the same: both take the whole object, or the same subresource of it, or the same
// body of another kind that writes the same fields.
func (e *Endpoint) alike(other *Endpoint) bool {
	if e.Whole || other.Whole {
		return e.Whole && other.Whole && e.Subresource == other.Subresource
	}
	return e.Body == other.Body && slices.Equal(e.Fields, other.Fields) && (len(e.Fields) > 0) &&
		(e.Subresource == other.Subresource || e.Subresource == "" || other.Subresource == "")
}

// Aliases returns the other endpoints that do the same as this one. A barrier at one of them must hold at all. Callers must not change
// the slice.
func Aliases(group, resource, subresource string) []Ref {
	return observed().aliases[key{group, resource, subresource}]
}

// Target returns the resource of the object that an endpoint writes, and false if it writes none.
func Target(group, resource, subresource string) (runtimeschema.GroupResource, bool) {
	o := observed()
	e, ok := Lookup(group, resource, subresource)
	if !ok || e.Storage == "" {
		return runtimeschema.GroupResource{}, false
	}
	s := o.storages[e.Storage]
	own := e.GroupResource()
	if s == nil || len(s.class) == 0 || slices.Contains(s.class, own) {
		return own, true
	}
	return s.class[0], true
}

// Writers returns every endpoint that writes objects of a resource, under any name of the resource, including its own.
func Writers(group, resource string) []Endpoint {
	o := observed()
	if e := o.endpoints[key{group, resource, ""}]; e != nil {
		if e.Storage == "" {
			return nil
		}
		return slices.Clone(o.storages[e.Storage].writers)
	}
	out := make([]Endpoint, 0, len(o.Custom))
	for i := range o.Custom {
		out = append(out, o.Custom[i].of(group, resource))
	}
	return out
}

// Parse decodes a written Observation, for tests and generators.
func Parse(content []byte) (*Observation, error) {
	o, err := decode(content)
	if err != nil {
		return nil, err
	}
	return &o.Observation, nil
}

// Sort sorts endpoints in the order of observed.yaml.
func Sort(endpoints []Endpoint) {
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return strings.Compare(a.Name(), b.Name())
	})
}

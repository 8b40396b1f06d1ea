package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Place is a resource or subresource as an authorizer sees it, without a version.
type Place struct{ Group, Resource, Sub string }

// Name is the name in RBAC notation, such as deployments/scale.
func (p Place) Name() string {
	if p.Sub == "" {
		return p.Resource
	}
	return p.Resource + "/" + p.Sub
}

func (p Place) String() string {
	if p.Group == "" {
		return p.Name()
	}
	return p.Name() + "." + p.Group
}

// Main is the resource to which a subresource belongs.
func (p Place) Main() Place { return Place{Group: p.Group, Resource: p.Resource} }

// Endpoint is a resource or subresource in one version, as discovery lists it.
type Endpoint struct {
	Place
	Version string
	// Kind is the kind of the documents that it accepts.
	Kind       runtimeschema.GroupVersionKind
	Namespaced bool
	Verbs      metav1.Verbs
}

func (e *Endpoint) String() string {
	return runtimeschema.GroupVersion{Group: e.Group, Version: e.Version}.String() + "/" + e.Name()
}

// Has reports whether discovery lists the verb.
func (e *Endpoint) Has(verb string) bool { return slices.Contains(e.Verbs, verb) }

// Path is the path of an object, or of the collection if name is empty.
func (e *Endpoint) Path(namespace, name string) string {
	var b strings.Builder
	if e.Group == "" {
		b.WriteString("/api/" + e.Version)
	} else {
		b.WriteString("/apis/" + e.Group + "/" + e.Version)
	}
	if e.Namespaced {
		b.WriteString("/namespaces/" + namespace)
	}
	b.WriteString("/" + e.Resource)
	if name != "" {
		b.WriteString("/" + name)
	}
	if e.Sub != "" {
		b.WriteString("/" + e.Sub)
	}
	return b.String()
}

// writeVerbs are the verbs that can store something. CONNECT uses get and create.
var writeVerbs = []string{"create", "update", "patch"}

// discover lists every endpoint that accepts a write, in a fixed order, and the main resource of each in its version.
func discover(config *rest.Config) ([]*Endpoint, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var out []*Endpoint
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.ContainsFunc(writeVerbs, func(verb string) bool { return slices.Contains(r.Verbs, verb) }) {
				continue
			}
			resource, sub, _ := strings.Cut(r.Name, "/")
			kind := gv.WithKind(r.Kind)
			if r.Version != "" {
				kind = runtimeschema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
			}
			out = append(out, &Endpoint{
				Place:   Place{Group: gv.Group, Resource: resource, Sub: sub},
				Version: gv.Version, Kind: kind, Namespaced: r.Namespaced, Verbs: r.Verbs,
			})
		}
	}
	slices.SortFunc(out, func(a, b *Endpoint) int { return cmp.Compare(a.String(), b.String()) })
	return out, nil
}

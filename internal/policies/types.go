package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Types returns the types of the objects of a resource or subresource, by version. A type is nil if the API server publishes none. There are
// none if the API server does not serve the resource.
type Types func(ref endpoint.Ref) (map[string]*spec.Schema, error)

// Published returns the types that an API server publishes. It reads discovery once, and each type once.
func Published(client discovery.DiscoveryInterface) Types {
	kinds := sync.OnceValues(func() (map[endpoint.Ref]map[string]runtimeschema.GroupVersionKind, error) {
		_, lists, err := client.ServerGroupsAndResources()
		// A group of an aggregated API server that does not answer has no types now.
		if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); err != nil && !errors.As(err, &failed) {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		return kindsOf(lists), nil
	})
	documents := sync.OnceValues(func() (map[string]openapi.GroupVersion, error) { return client.OpenAPIV3().Paths() })
	read := map[string]map[string]*spec.Schema{}
	known := map[endpoint.Ref]map[string]*spec.Schema{}
	return func(ref endpoint.Ref) (map[string]*spec.Schema, error) {
		if out, ok := known[ref]; ok {
			return out, nil
		}
		served, err := kinds()
		if err != nil {
			return nil, err
		}
		out := map[string]*spec.Schema{}
		for name, kind := range served[ref] {
			// The document of the resource has the types of its subresources too, which may be of another group.
			path := "apis/" + ref.Group + "/" + name
			if ref.Group == "" {
				path = "api/" + name
			}
			if _, ok := read[path]; !ok {
				if read[path], err = components(documents, path); err != nil {
					return nil, fmt.Errorf("types of %s: %w", path, err)
				}
			}
			if out[name], err = typeIn(read[path], kind); err != nil {
				return nil, fmt.Errorf("type of %s: %w", kind, err)
			}
		}
		known[ref] = out
		return out, nil
	}
}

// components returns the types in the document of a group and version, none while it is not published.
func components(documents func() (map[string]openapi.GroupVersion, error), path string) (map[string]*spec.Schema, error) {
	all, err := documents()
	if err != nil || all[path] == nil {
		return nil, err
	}
	text, err := all[path].Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	return document.Components.Schemas, nil
}

const componentPrefix = "#/components/schemas/"

// typeIn returns the type of a kind, with the types that it refers to in their places. It is nil if there is none.
func typeIn(components map[string]*spec.Schema, kind runtimeschema.GroupVersionKind) (*spec.Schema, error) {
	for _, name := range slices.Sorted(maps.Keys(components)) {
		var kinds []runtimeschema.GroupVersionKind
		if err := components[name].Extensions.GetObject("x-kubernetes-group-version-kind", &kinds); err != nil {
			return nil, err
		}
		if slices.Contains(kinds, kind) {
			return resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
				of, ok := components[strings.TrimPrefix(ref, componentPrefix)]
				return of, ok
			}, componentPrefix+name)
		}
	}
	return nil, nil
}

// kindsOf returns the kinds of resources and subresources by version.
func kindsOf(lists []*metav1.APIResourceList) map[endpoint.Ref]map[string]runtimeschema.GroupVersionKind {
	out := map[endpoint.Ref]map[string]runtimeschema.GroupVersionKind{}
	for _, list := range lists {
		if list == nil {
			continue
		}
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			resource, subresource, _ := strings.Cut(r.Name, "/")
			ref := endpoint.Ref{Group: gv.Group, Resource: resource, Subresource: subresource}
			// The body of a subresource may be of a kind of another group.
			kind := gv.WithKind(r.Kind)
			if r.Version != "" {
				kind.Group, kind.Version = r.Group, r.Version
			}
			if out[ref] == nil {
				out[ref] = map[string]runtimeschema.GroupVersionKind{}
			}
			out[ref][gv.Version] = kind
		}
	}
	return out
}

package policies

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
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
	schemas := resolver.ClientDiscoveryResolver{Discovery: client}
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
			out[name], err = schemas.ResolveSchema(kind)
			if err != nil && !errors.Is(err, resolver.ErrSchemaNotFound) {
				return nil, fmt.Errorf("type of %s: %w", kind, err)
			}
		}
		known[ref] = out
		return out, nil
	}
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

package allowlist

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// List has the resources for which /authorize may allow a holder of the marker. The zero List and a nil one are empty. A
// List is immutable.
type List struct {
	resources map[resource]Served
}

// Served describes how the server serves a resource.
type Served struct {
	Version, Kind string
	// Versions are all versions in which the resource can be written, Version first.
	Versions   []string
	Namespaced bool
	// Aggregated means that another server serves the resource, with its own admission.
	Aggregated bool
}

type resource struct{ group, name, subresource string }

// Has reports whether the list has a resource, in any version, or one of its subresources. It returns false for wildcards.
func (l *List) Has(group, name, subresource string) bool {
	if l == nil {
		return false
	}
	_, ok := l.resources[resource{group, name, subresource}]
	return ok
}

// Served returns how a resource in the list is served.
func (l *List) Served(group, name string) (Served, bool) {
	if l == nil {
		return Served{}, false
	}
	served, ok := l.resources[resource{group, name, ""}]
	return served, ok
}

// Len returns how many resources and subresources the list has.
func (l *List) Len() int {
	if l == nil {
		return 0
	}
	return len(l.resources)
}

// Build returns the allowlist from the server's resource lists. aggregated are the groups that another server serves; this API
// server's admission never sees writes to them. named are those of them that the allowlist includes all the same.
func Build(lists []*metav1.APIResourceList, aggregated, named []string) *List {
	out := &List{resources: map[resource]Served{}}
	eachLocal(lists, aggregated, named, func(gv runtimeschema.GroupVersion, r *metav1.APIResource) {
		if strings.Contains(r.Name, "/") || !has(r, "get") || !has(r, "create", "update", "patch") || !endpoint.TakesMarker(gv.Group, r.Name, "") {
			return
		}
		at := resource{gv.Group, r.Name, ""}
		served, known := out.resources[at]
		if !known {
			// The versions of a group are in the server's order of preference.
			served = Served{
				Version: gv.Version, Kind: r.Kind, Namespaced: r.Namespaced, Aggregated: slices.Contains(aggregated, gv.Group),
			}
		}
		served.Versions = append(served.Versions, gv.Version)
		out.resources[at] = served
	})
	eachLocal(lists, aggregated, named, func(gv runtimeschema.GroupVersion, r *metav1.APIResource) {
		group := gv.Group
		name, subresource, ok := strings.Cut(r.Name, "/")
		if ok && out.Has(group, name, "") && endpoint.TakesMarker(group, name, subresource) && has(r, "update", "patch") {
			out.resources[resource{group, name, subresource}] = Served{}
		}
	})
	return out
}

func eachLocal(lists []*metav1.APIResourceList, aggregated, named []string, visit func(gv runtimeschema.GroupVersion, r *metav1.APIResource)) {
	for _, list := range lists {
		if list == nil {
			continue
		}
		// The group and version of an APIResource are those of the kind of its object (for example, autoscaling/v1 of a Scale). The
		// resource is served under the group and version of the list.
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		if slices.Contains(aggregated, gv.Group) && !slices.Contains(named, gv.Group) {
			continue
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; !strings.Contains(r.Name, "*") {
				visit(gv, r)
			}
		}
	}
}

func has(r *metav1.APIResource, anyOf ...string) bool {
	for _, verb := range r.Verbs {
		if slices.Contains(anyOf, verb) {
			return true
		}
	}
	return false
}

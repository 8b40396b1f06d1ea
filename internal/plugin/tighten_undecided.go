package plugin

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// undecided returns the served resources with update or patch on which fieldperm does not decide, and "*" for each group of which discovery
// failed.
func undecided(lists []*metav1.APIResourceList, failed []string, decides func(tighten.Resource) tighten.Decides) []tighten.Resource {
	var out []tighten.Resource
	for _, group := range failed {
		out = append(out, tighten.Resource{Group: group, Name: rbacv1.ResourceAll})
	}
	for _, list := range lists {
		group := groupOf(list)
		if slices.Contains(failed, group) {
			continue
		}
		for i := range list.APIResources {
			served := &list.APIResources[i]
			r := tighten.Resource{Group: group, Name: served.Name}
			if (slices.Contains(served.Verbs, "update") || slices.Contains(served.Verbs, "patch")) && decides(r) == tighten.DecidesNot {
				out = append(out, r)
			}
		}
	}
	return sorted(out)
}

// undecidedOffline returns those of a cluster that is not known. A proxy takes requests of all methods.
func undecidedOffline() []tighten.Resource {
	var out []tighten.Resource
	for _, e := range endpoint.All() {
		if (e.Updates() || e.Subresource == "proxy") && !endpoint.TakesMarker(e.Group, e.Resource, e.Subresource) {
			out = append(out, tighten.Resource{Group: e.Group, Name: strings.TrimSuffix(e.Resource+"/"+e.Subresource, "/")})
		}
	}
	return sorted(out)
}

func sorted(list []tighten.Resource) []tighten.Resource {
	slices.SortFunc(list, func(a, b tighten.Resource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
}

package observation

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// covers reports whether rules name a resource. A resource stands for its subresources, too.
func covers(rules []v1alpha1.ResourceRule, ref schema.ResourceRef) bool {
	for _, rule := range rules {
		if !slices.Contains(rule.APIGroups, "*") && !slices.Contains(rule.APIGroups, ref.Group) {
			continue
		}
		for _, name := range rule.Resources {
			resource, subresource, single := strings.Cut(name, "/")
			if (resource == "*" || resource == ref.Resource) && (!single || subresource == "*" || subresource == ref.Subresource) {
				return true
			}
		}
	}
	return false
}

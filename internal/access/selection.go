package access

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/verbs"
)

// Selection returns which RBAC objects of a cluster matter for a write of the objects of a kind that is in namespaces or not.
func (w *Write) Selection(namespaced bool) rbac.Selection {
	s := rbac.Selection{Namespaced: namespaced, Namespace: w.Namespace}
	if w.ofNamespaces() && !w.posts() {
		s.Namespaced, s.Namespace = true, w.Name
	}
	asked := &authorizer.AttributesRecord{APIGroup: w.Group, Resource: w.Resource, Subresource: w.Subresource, ResourceRequest: true}
	others := append(w.generics(), readVerb)
	s.Keep = func(rule *rbacv1.PolicyRule) bool {
		return rbac.Concerns(rule, asked) && slices.ContainsFunc(rule.Verbs, func(verb string) bool {
			return verb == rbacv1.VerbAll || slices.Contains(others, verb) || strings.HasPrefix(verb, verbs.Marker)
		})
	}
	return s
}

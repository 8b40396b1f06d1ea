package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// question is what is asked, with the names under which a rule's resources may hold it.
type question struct {
	authorizer.Attributes
	resource, wildcard string
}

// ask puts the names together once, however many rules there are.
func ask(a authorizer.Attributes) question {
	q := question{Attributes: a, resource: a.GetResource(), wildcard: rbacv1.ResourceAll}
	if sub := a.GetSubresource(); sub != "" {
		// A resource's name alone does not stand for its subresources.
		q.resource, q.wildcard = q.resource+"/"+sub, "*/"+sub
	}
	return q
}

// allows reports whether one rule allows what is asked. RBAC only adds up: there is no rule that
// forbids, and no wildcard inside a verb: "granular:*" is a verb like any other.
func allows(rule *rbacv1.PolicyRule, a *question) bool {
	if !named(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		path := a.GetPath()
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return urlMatches(url, path) })
	}
	if !named(rule.APIGroups, a.GetAPIGroup()) {
		return false
	}
	if !named(rule.Resources, a.resource) && !slices.Contains(rule.Resources, a.wildcard) {
		return false
	}
	return len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName())
}

// named reports whether the names hold the name or the wildcard, which is the same for verbs, API
// groups and resources.
func named(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, "*")
}

// urlMatches takes a star at the end of the pattern only; anywhere else it is a letter.
func urlMatches(pattern, path string) bool {
	prefix := strings.TrimRight(pattern, "*")
	return pattern == path || prefix != pattern && strings.HasPrefix(path, prefix)
}

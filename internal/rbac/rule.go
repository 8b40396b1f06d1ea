package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// question is a request with the names under which the resources of a rule may list its resource.
type question struct {
	authorizer.Attributes
	resource, wildcard string
}

// ask builds these names once, for any number of rules.
func ask(a authorizer.Attributes) question {
	q := question{Attributes: a, resource: a.GetResource(), wildcard: rbacv1.ResourceAll}
	if sub := a.GetSubresource(); sub != "" {
		// The name of a resource alone does not include its subresources.
		q.resource, q.wildcard = q.resource+"/"+sub, "*/"+sub
	}
	return q
}

// allows reports whether one rule allows the request. RBAC only adds: no rule denies. A verb has no wildcard inside: "granular:*"
// is an ordinary verb.
func allows(rule *rbacv1.PolicyRule, a *question) bool {
	if !named(rule.Verbs, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		path := a.GetPath()
		return slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool { return urlMatches(url, path) })
	}
	if !concerns(rule, a) {
		return false
	}
	return len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName())
}

// concerns reports whether a rule is about the resource of the request, whatever its verbs and names.
func concerns(rule *rbacv1.PolicyRule, a *question) bool {
	return named(rule.APIGroups, a.GetAPIGroup()) && (named(rule.Resources, a.resource) || slices.Contains(rule.Resources, a.wildcard))
}

// named reports whether the names contain the name or the wildcard. The wildcard is the same for verbs, API groups and resources.
func named(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, "*")
}

// urlMatches treats a star as a wildcard only at the end of the pattern.
func urlMatches(pattern, path string) bool {
	prefix := strings.TrimRight(pattern, "*")
	return pattern == path || prefix != pattern && strings.HasPrefix(path, prefix)
}

package audit

import (
	"context"
	"slices"
	"strings"
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Role is a Role or a ClusterRole.
type Role struct {
	Ref
	Location
	Labels map[string]string
	// Aggregation is that of a ClusterRole. Its rules are copies of those of other ClusterRoles.
	Aggregation *rbacv1.AggregationRule
	Rules       []rbacv1.PolicyRule
}

// Binding is a RoleBinding or a ClusterRoleBinding.
type Binding struct {
	Ref
	Location
	Labels   map[string]string
	Role     Ref
	Subjects []rbacv1.Subject
}

// Source lists RBAC objects, in the same order each time. It may be asked twice. An object may be changed after visit returns. The functions
// are required.
type Source struct {
	ClusterRoles, Roles               func(ctx context.Context, visit func(*Role) error) error
	ClusterRoleBindings, RoleBindings func(ctx context.Context, visit func(*Binding) error) error
}

// keptRole is what the audit keeps of a role: the rules that count for what subjects hold.
type keptRole struct {
	Ref
	Location
	labels map[string]string
	rules  []keptRule
	// granular means that a rule names the marker or a granular verb. Otherwise the role was kept for its wildcards.
	granular, aggregated, builtIn bool
}

// keptRule is a rule with interned texts.
type keptRule struct {
	index                           int
	groups, resources, names, verbs []string
}

func interned(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = unique.Make(text).Value()
	}
	return out
}

func kept(index int, r *rbacv1.PolicyRule) keptRule {
	return keptRule{index, interned(r.APIGroups), interned(r.Resources), interned(r.ResourceNames), interned(r.Verbs)}
}

// has reports whether the rule grants a verb.
func (r *keptRule) has(verb string) bool {
	return slices.Contains(r.verbs, verb) || slices.Contains(r.verbs, rbacv1.VerbAll)
}

// Resource is a resource in a rule: its Name may have a subresource, and both may be wildcards.
type Resource struct{ Group, Name string }

// String returns deployments/scale.apps.
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// split returns the name of the resource and of the subresource.
func (r Resource) split() (resource, subresource string) {
	resource, subresource, _ = strings.Cut(r.Name, "/")
	return resource, subresource
}

// wildcard reports whether it stands for several.
func (r Resource) wildcard() bool {
	return r.Group == rbacv1.APIGroupAll || r.Name == rbacv1.ResourceAll || strings.HasPrefix(r.Name, "*/")
}

// covers reports whether a rule is about all that a resource stands for.
func (r *keptRule) covers(of Resource) bool {
	return (slices.Contains(r.groups, of.Group) || slices.Contains(r.groups, rbacv1.APIGroupAll)) && slices.ContainsFunc(r.resources, func(name string) bool {
		return resourceCovers(name, of.Name)
	})
}

// meets reports whether a rule is about any of what a resource stands for.
func (r *keptRule) meets(of Resource) bool {
	return slices.ContainsFunc(r.groups, func(g string) bool { return g == of.Group || g == rbacv1.APIGroupAll || of.Group == rbacv1.APIGroupAll }) &&
		slices.ContainsFunc(r.resources, func(name string) bool { return resourceCovers(name, of.Name) || resourceCovers(of.Name, name) })
}

// resourceCovers is the comparison of RBAC: "*" is everything, "*/scale" the subresource of every resource.
func resourceCovers(pattern, name string) bool {
	if pattern == rbacv1.ResourceAll || pattern == name {
		return true
	}
	_, subresource, found := strings.Cut(name, "/")
	return found && pattern == "*/"+subresource
}

// about reports whether a rule is about a resource or one of its subresources.
func (r *keptRule) about(group, resource string) bool {
	return (slices.Contains(r.groups, group) || slices.Contains(r.groups, rbacv1.APIGroupAll)) && slices.ContainsFunc(r.resources, func(name string) bool {
		name, _, _ = strings.Cut(name, "/")
		return name == rbacv1.ResourceAll || name == resource
	})
}

// targets are the combinations of groups and resources of a rule.
func (r *keptRule) targets() []Resource { return targetsOf(r.groups, r.resources) }

func targetsOf(groups, resources []string) []Resource {
	var out []Resource
	for _, name := range resources {
		for _, group := range groups {
			out = append(out, Resource{group, name})
		}
	}
	return out
}

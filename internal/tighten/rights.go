package tighten

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/spelling"
)

// Ref names an RBAC object.
type Ref struct{ Kind, Namespace, Name string }

// String returns the kind and the name: Role team/deployer.
func (r Ref) String() string { return r.Kind + " " + Object{r.Namespace, r.Name}.String() }

func compareRefs(a, b Ref) int { return strings.Compare(a.String(), b.String()) }

// These are the kinds of RBAC objects.
const (
	roleKind               = "Role"
	clusterRoleKind        = "ClusterRole"
	roleBindingKind        = "RoleBinding"
	clusterRoleBindingKind = "ClusterRoleBinding"
)

// Grant is a role that the subject has by one binding.
type Grant struct {
	Binding, Role Ref
	// Scope is the namespace in which the rules hold, "" for all.
	Scope string
	// Group is the group through which the subject has the grant, "" if the binding names the subject itself. Only the latter can be taken
	// from the subject.
	Group string
	Rules []rbacv1.PolicyRule
}

// writes returns the rules with update, patch or "*".
func (g *Grant) writes() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range g.Rules {
		if grantsUpdate(&g.Rules[i]) {
			out = append(out, g.Rules[i])
		}
	}
	return out
}

// UpdateScopes returns the namespaces in which grants let update or patch a resource or one of its subresources, or only "" for all.
func UpdateScopes(grants []Grant, r Resource) []string {
	var out []string
	for i := range grants {
		if !slices.ContainsFunc(grants[i].writes(), func(rule rbacv1.PolicyRule) bool {
			return matches(&rule, r) || slices.ContainsFunc(rule.Resources, func(name string) bool {
				main, _, sub := strings.Cut(name, "/")
				return sub && (main == r.Name || main == "*") && matches(&rule, Resource{r.Group, strings.Replace(name, "*/", r.Name+"/", 1)})
			})
		}) {
			continue
		}
		if grants[i].Scope == "" {
			return []string{""}
		}
		if !slices.Contains(out, grants[i].Scope) {
			out = append(out, grants[i].Scope)
		}
	}
	return out
}

// cluster are the RBAC objects by name.
type cluster struct {
	objects *rbac.Grants
	roles   map[Ref]*rbacv1.Role
	cluster map[Ref]*rbacv1.ClusterRole
}

func newCluster(objects *rbac.Grants) *cluster {
	c := &cluster{objects: objects, roles: map[Ref]*rbacv1.Role{}, cluster: map[Ref]*rbacv1.ClusterRole{}}
	for i := range objects.Roles {
		r := &objects.Roles[i]
		c.roles[Ref{roleKind, r.Namespace, r.Name}] = r
	}
	for i := range objects.ClusterRoles {
		r := &objects.ClusterRoles[i]
		c.cluster[Ref{clusterRoleKind, "", r.Name}] = r
	}
	return c
}

// without returns objects without some of them.
func without(objects *rbac.Grants, some func(Ref) bool) *rbac.Grants {
	return &rbac.Grants{
		Roles: slices.DeleteFunc(slices.Clone(objects.Roles), func(r rbacv1.Role) bool { return some(Ref{roleKind, r.Namespace, r.Name}) }),
		ClusterRoles: slices.DeleteFunc(slices.Clone(objects.ClusterRoles), func(r rbacv1.ClusterRole) bool {
			return some(Ref{clusterRoleKind, "", r.Name})
		}),
		RoleBindings: slices.DeleteFunc(slices.Clone(objects.RoleBindings), func(b rbacv1.RoleBinding) bool {
			return some(Ref{roleBindingKind, b.Namespace, b.Name})
		}),
		ClusterRoleBindings: slices.DeleteFunc(slices.Clone(objects.ClusterRoleBindings), func(b rbacv1.ClusterRoleBinding) bool {
			return some(Ref{clusterRoleBindingKind, "", b.Name})
		}),
	}
}

// rules returns the rules of a role, and whether it exists.
func (c *cluster) rules(ref Ref) ([]rbacv1.PolicyRule, bool) {
	if r := c.roles[ref]; r != nil {
		return r.Rules, true
	}
	if r := c.cluster[ref]; r != nil {
		return r.Rules, true
	}
	return nil, false
}

// boundRole is a binding of either kind.
type boundRole struct {
	binding, role Ref
	subjects      []rbacv1.Subject
}

func (c *cluster) bindings(visit func(b boundRole)) {
	for i := range c.objects.ClusterRoleBindings {
		b := &c.objects.ClusterRoleBindings[i]
		visit(boundRole{Ref{clusterRoleBindingKind, "", b.Name}, Ref{b.RoleRef.Kind, "", b.RoleRef.Name}, b.Subjects})
	}
	for i := range c.objects.RoleBindings {
		b := &c.objects.RoleBindings[i]
		role := Ref{b.RoleRef.Kind, "", b.RoleRef.Name}
		if role.Kind == roleKind {
			role.Namespace = b.Namespace
		}
		visit(boundRole{Ref{roleBindingKind, b.Namespace, b.Name}, role, b.Subjects})
	}
}

// Held returns the roles of the subject: by its name, by the groups that it always has, and by these groups.
func Held(objects *rbac.Grants, s Subject, groups []string) []Grant {
	return newCluster(objects).held(s, groups)
}

func (c *cluster) held(s Subject, groups []string) []Grant {
	groups = append(s.Groups(), groups...)
	var out []Grant
	c.bindings(func(b boundRole) {
		rules, ok := c.rules(b.role)
		if !ok {
			return
		}
		direct, group := false, ""
		for i := range b.subjects {
			named := &b.subjects[i]
			direct = direct || s.names(named, b.binding.Namespace)
			if named.Kind == rbacv1.GroupKind && slices.Contains(groups, named.Name) {
				group = named.Name
			}
		}
		grant := Grant{Binding: b.binding, Role: b.role, Scope: b.binding.Namespace, Rules: rules}
		if direct {
			out = append(out, grant)
		}
		if group != "" && (s.Kind != rbacv1.GroupKind || group != s.Name) {
			grant.Group = group
			out = append(out, grant)
		}
	})
	slices.SortFunc(out, func(a, b Grant) int { return compareRefs(a.Binding, b.Binding) })
	return out
}

// known reports whether any binding or the evidence names the subject. If not, the second result has similar names.
func (c *cluster) known(s Subject) (bool, []string) {
	found, near := false, map[string]int{}
	c.bindings(func(b boundRole) {
		for i := range b.subjects {
			named := &b.subjects[i]
			if s.names(named, b.binding.Namespace) {
				found = true
				continue
			}
			other := Subject{Kind: named.Kind, Namespace: named.Namespace, Name: named.Name}
			if other.Kind == rbacv1.ServiceAccountKind && other.Namespace == "" {
				other.Namespace = b.binding.Namespace
			}
			if d := spelling.Edits(strings.ToLower(s.String()), strings.ToLower(other.String())); d <= max(3, len(s.Name)/3) || other.Name == s.Name {
				near[other.String()] = d
			}
		}
	})
	var names []string
	for name := range near {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if near[a] != near[b] {
			return near[a] - near[b]
		}
		return strings.Compare(a, b)
	})
	return found, names[:min(len(names), 3)]
}

// Unknown returns an error if no binding names the subject. It names similar subjects.
func Unknown(objects *rbac.Grants, s Subject) error {
	found, near := newCluster(objects).known(s)
	if found {
		return nil
	}
	cure := "correct the name"
	if len(near) > 0 {
		cure = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("subject %q: no RoleBinding and no ClusterRoleBinding names it, so there is nothing to take from it: %s", s, cure)
}

// sharing says why a role cannot be changed for the subject alone, "" if it can. A ClusterRole that is bound in a namespace cannot: who
// administers a namespace may bind it there, and shall not make the proposal change an object of the whole cluster.
func (c *cluster) sharing(role Ref, s Subject) string {
	reason := ""
	c.bindings(func(b boundRole) {
		if b.role != role || reason != "" {
			return
		}
		for i := range b.subjects {
			if named := &b.subjects[i]; !s.names(named, b.binding.Namespace) {
				reason = fmt.Sprintf("%s is bound to %s %q as well", role, named.Kind, named.Name)
				return
			}
		}
		if role.Kind == clusterRoleKind && b.binding.Namespace != "" {
			reason = fmt.Sprintf("%s is of the whole cluster, and %s binds it in a namespace", role, b.binding)
		}
	})
	r := c.cluster[role]
	if reason != "" || r == nil {
		return reason
	}
	if r.AggregationRule != nil {
		return fmt.Sprintf("%s is aggregated, so that a controller writes its rules", role)
	}
	if by := c.aggregating(r.Labels); len(by) > 0 {
		return fmt.Sprintf("%s is a part of the aggregated ClusterRole %q", role, by[0].Name)
	}
	return ""
}

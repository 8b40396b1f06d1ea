package rbac

import rbacv1 "k8s.io/api/rbac/v1"

// Bound is a binding with the rules of its role.
type Bound struct {
	// Namespace is "" for a binding in all namespaces.
	Namespace string
	// Role is the kind and the name of the role.
	Role     rbacv1.RoleRef
	Rules    []rbacv1.PolicyRule
	Subjects []rbacv1.Subject
}

// Bound returns the bindings whose roles are known: those in all namespaces first. A ServiceAccount without a namespace gets that of the
// binding.
func (g *Grants) Bound() []Bound {
	var out []Bound
	add := func(namespace string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		b := Bound{Namespace: namespace, Role: role, Rules: g.rulesOf(namespace, role)}
		for _, s := range subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				s.Namespace = accountNamespace(&s, namespace)
			}
			b.Subjects = append(b.Subjects, s)
		}
		if len(b.Rules) > 0 {
			out = append(out, b)
		}
	}
	for i := range g.ClusterRoleBindings {
		add("", g.ClusterRoleBindings[i].RoleRef, g.ClusterRoleBindings[i].Subjects)
	}
	for i := range g.RoleBindings {
		add(g.RoleBindings[i].Namespace, g.RoleBindings[i].RoleRef, g.RoleBindings[i].Subjects)
	}
	return out
}

// rulesOf returns the rules of a role as it is stored: an API server has filled in those of an aggregated ClusterRole.
func (g *Grants) rulesOf(namespace string, role rbacv1.RoleRef) []rbacv1.PolicyRule {
	if role.Kind == "Role" {
		for i := range g.Roles {
			if g.Roles[i].Namespace == namespace && g.Roles[i].Name == role.Name {
				return g.Roles[i].Rules
			}
		}
		return nil
	}
	for i := range g.ClusterRoles {
		if g.ClusterRoles[i].Name == role.Name {
			return g.ClusterRoles[i].Rules
		}
	}
	return nil
}

package tighten

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Binding is a RoleBinding or a ClusterRoleBinding, with the role that it names.
type Binding struct {
	Ref, Role Ref
	UID       types.UID
	Subjects  []rbacv1.Subject
}

// Bindings returns all bindings, in the order of the objects.
func Bindings(objects *rbac.Grants) []Binding {
	var out []Binding
	newCluster(objects).bindings(func(b boundRole) {
		out = append(out, Binding{Ref: b.binding, Role: b.role, Subjects: b.subjects})
	})
	for i := range objects.ClusterRoleBindings {
		out[i].UID = objects.ClusterRoleBindings[i].UID
	}
	for i := range objects.RoleBindings {
		out[len(objects.ClusterRoleBindings)+i].UID = objects.RoleBindings[i].UID
	}
	return out
}

// Sharing says why the rules of a role are not those of the subject alone, "" if they are.
func Sharing(objects *rbac.Grants, role Ref, s Subject) string {
	return newCluster(objects).sharing(role, s)
}

// Foreign returns the bindings that name a role which the proposal adds, and that are not the proposal's own. Their subjects would get the
// rules of the role.
func Foreign(p *Proposal, objects *rbac.Grants) []Binding {
	own, roles := map[Ref]Ref{}, map[Ref]bool{}
	for _, b := range Bindings(&p.Add) {
		own[b.Ref], roles[b.Role] = b.Role, true
	}
	var out []Binding
	for _, b := range Bindings(objects) {
		if !roles[b.Role] {
			continue
		}
		mine := own[b.Ref] == b.Role
		for i := range b.Subjects {
			mine = mine && p.Subject.names(&b.Subjects[i], b.Ref.Namespace)
		}
		if !mine {
			out = append(out, b)
		}
	}
	return out
}

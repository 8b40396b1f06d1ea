package apply

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// before returns objects without what was added, and with what was taken. An object that has changed since stays as it is.
func (r *record) before(objects *rbac.Grants) *rbac.Grants {
	// Names are enough: nothing of the name of an added object shall count as held.
	out := tighten.Without(objects, func(ref tighten.Ref) bool { return r.added(ref) != nil })
	hashes := map[identity]string{}
	for i := range out.ClusterRoles {
		o := &out.ClusterRoles[i]
		o.Rules = r.rulesBefore(hashes, identityOf(tighten.Ref{Kind: clusterRoleKind, Name: o.Name}, o.UID), o)
	}
	for i := range out.Roles {
		o := &out.Roles[i]
		o.Rules = r.rulesBefore(hashes, identityOf(tighten.Ref{Kind: roleKind, Namespace: o.Namespace, Name: o.Name}, o.UID), clusterRole(o))
	}
	for i := range out.ClusterRoleBindings {
		o := &out.ClusterRoleBindings[i]
		o.Subjects = r.subjectsBefore(hashes, identityOf(tighten.Ref{Kind: clusterRoleBindingKind, Name: o.Name}, o.UID), o.Subjects)
	}
	for i := range out.RoleBindings {
		o := &out.RoleBindings[i]
		o.Subjects = r.subjectsBefore(hashes, identityOf(tighten.Ref{Kind: roleBindingKind, Namespace: o.Namespace, Name: o.Name}, o.UID), o.Subjects)
	}
	return out
}

// rulesBefore returns the rules of a role before Apply, and notes the hash that the role has now if the record is about it.
func (r *record) rulesBefore(hashes map[identity]string, id identity, now *rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if !slices.ContainsFunc(r.Changed, func(t taken) bool { return t.identity == id || t.Role != nil && *t.Role == id }) {
		return now.Rules
	}
	sum := (&object{role: now}).hash()
	hashes[id] = sum
	for i := range r.Changed {
		if t := &r.Changed[i]; t.identity == id && t.After == sum {
			return t.Rules
		}
	}
	return now.Rules
}

// subjectsBefore returns the subjects of a binding before Apply, if the role that it names is still the one that the subject had.
func (r *record) subjectsBefore(hashes map[identity]string, id identity, now []rbacv1.Subject) []rbacv1.Subject {
	for i := range r.Changed {
		if t := &r.Changed[i]; t.identity == id && t.Role != nil && hashes[*t.Role] == t.RoleHash {
			return putBack(slices.Clone(now), t.Subjects)
		}
	}
	return now
}

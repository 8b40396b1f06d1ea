package rbac

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Selection says which objects of a cluster are about a question.
type Selection struct {
	// Namespaced means that Roles and RoleBindings matter: those of Namespace, "" for all.
	Namespaced bool
	Namespace  string
	// Keep reports whether a rule matters.
	Keep func(*rbacv1.PolicyRule) bool
}

// ListAbout reads the rules of a cluster that matter, and the bindings to roles with such a rule. Roles come first, so that other bindings and
// rules are dropped as they are read: memory does not grow with them. A kind that cannot be read is left out, with an error that ends with the cure.
// When the context ends, what was read is there. visited is called for each object with its kind. The client of v needs list on the kinds.
func ListAbout(ctx context.Context, v *Visitor, s Selection, visited func(kind string)) (*Grants, []error) {
	r := selector{Selection: s, kept: map[Name]bool{}}
	within := *v
	within.Namespace = s.Namespace
	listAbout(ctx, &r, "ClusterRole", within.ClusterRoles, visited)
	if s.Namespaced {
		listAbout(ctx, &r, "Role", within.Roles, visited)
	}
	listAbout(ctx, &r, "ClusterRoleBinding", within.ClusterRoleBindings, visited)
	if s.Namespaced {
		listAbout(ctx, &r, "RoleBinding", within.RoleBindings, visited)
	}
	return &r.out, r.errs
}

// listAbout reads the objects of a kind that matter.
func listAbout[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, r *selector, kind string, list func(context.Context, func(P) error) error, visited func(kind string)) {
	done := 0
	err := list(ctx, func(object P) error {
		r.add(object)
		done++
		visited(kind)
		return ctx.Err()
	})
	resource := strings.ToLower(kind) + "s"
	switch {
	case ctx.Err() != nil:
		r.errs = append(r.errs, fmt.Errorf("%s: interrupted after %d: ask again", resource, done))
	case apierrors.IsForbidden(err):
		r.errs = append(r.errs, fmt.Errorf("%[1]s: %[2]w: allow list on %[1]s.%[3]s", resource, err, rbacv1.GroupName))
	case err != nil:
		r.errs = append(r.errs, fmt.Errorf("%s: %w: ask again when the API server answers", resource, err))
	}
}

// Select returns the part of g that ListAbout would read of a cluster with these objects.
func (g *Grants) Select(s Selection) *Grants {
	r := selector{Selection: s, kept: map[Name]bool{}}
	for i := range g.ClusterRoles {
		r.add(&g.ClusterRoles[i])
	}
	for i := range g.Roles {
		if s.Namespaced && (s.Namespace == "" || s.Namespace == g.Roles[i].Namespace) {
			r.add(&g.Roles[i])
		}
	}
	for i := range g.ClusterRoleBindings {
		r.add(&g.ClusterRoleBindings[i])
	}
	for i := range g.RoleBindings {
		if s.Namespaced && (s.Namespace == "" || s.Namespace == g.RoleBindings[i].Namespace) {
			r.add(&g.RoleBindings[i])
		}
	}
	return &r.out
}

type selector struct {
	Selection
	out  Grants
	kept map[Name]bool
	errs []error
}

// add keeps what matters of an object.
func (r *selector) add(item runtime.Object) {
	switch o := item.(type) {
	case *rbacv1.ClusterRole:
		if rules := r.rules(o.Rules); len(rules) > 0 {
			r.kept[Name{"ClusterRole", "", o.Name}] = true
			r.out.ClusterRoles = append(r.out.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Rules: rules})
		}
	case *rbacv1.Role:
		if rules := r.rules(o.Rules); len(rules) > 0 {
			r.kept[Name{"Role", o.Namespace, o.Name}] = true
			r.out.Roles = append(r.out.Roles, rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Rules: rules})
		}
	case *rbacv1.ClusterRoleBinding:
		if r.kept[Name{o.RoleRef.Kind, "", o.RoleRef.Name}] {
			r.out.ClusterRoleBindings = append(r.out.ClusterRoleBindings, rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, RoleRef: o.RoleRef, Subjects: o.Subjects})
		}
	case *rbacv1.RoleBinding:
		role := Name{o.RoleRef.Kind, "", o.RoleRef.Name}
		if role.Kind == "Role" {
			role.Namespace = o.Namespace
		}
		if r.kept[role] {
			r.out.RoleBindings = append(r.out.RoleBindings, rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, RoleRef: o.RoleRef, Subjects: o.Subjects})
		}
	}
}

func (r *selector) rules(all []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range all {
		if r.Keep(&all[i]) {
			out = append(out, *all[i].DeepCopy())
		}
	}
	return out
}

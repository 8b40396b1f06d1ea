package tighten

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// Aggregation is an aggregated ClusterRole that selects a ClusterRole to add, whose rules a controller writes into it.
type Aggregation struct {
	By, Role Ref
	// Subjects are those of the bindings that name the aggregated ClusterRole.
	Subjects []rbacv1.Subject
}

// Aggregating returns the aggregated ClusterRoles that select a ClusterRole which the proposal adds. Their subjects would get the rules of
// the role. The labels count that the role is added with and, if it is there, those that it has.
func Aggregating(p *Proposal, objects *rbac.Grants) []Aggregation {
	c := newCluster(objects)
	var out []Aggregation
	for i := range p.Add.ClusterRoles {
		added := &p.Add.ClusterRoles[i]
		ref := Ref{clusterRoleKind, "", added.Name}
		by := c.aggregating(added.Labels)
		if live := c.cluster[ref]; live != nil {
			by = append(by, c.aggregating(live.Labels)...)
		}
		slices.SortFunc(by, compareRefs)
		for _, aggregated := range slices.Compact(by) {
			one := Aggregation{By: aggregated, Role: ref}
			c.bindings(func(b boundRole) {
				if b.role == aggregated {
					one.Subjects = append(one.Subjects, b.subjects...)
				}
			})
			out = append(out, one)
		}
	}
	return out
}

// aggregating returns the aggregated ClusterRoles of which a selector matches labels.
func (c *cluster) aggregating(set labels.Set) []Ref {
	var out []Ref
	for i := range c.objects.ClusterRoles {
		r := &c.objects.ClusterRoles[i]
		if r.AggregationRule != nil && slices.ContainsFunc(r.AggregationRule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(set)
		}) {
			out = append(out, Ref{clusterRoleKind, "", r.Name})
		}
	}
	return out
}

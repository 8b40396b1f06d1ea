package tighten

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Binding is a RoleBinding or a ClusterRoleBinding, with the role that it names.
type Binding struct{ Ref, Role Ref }

// Foreign returns the bindings that name a role which the proposal adds, and that are not the proposal's own. Their subjects would get the
// rules of the role.
func Foreign(p *Proposal, objects *rbac.Grants) []Binding {
	own, roles := map[Ref]Ref{}, map[Ref]bool{}
	newCluster(&p.Add).bindings(func(b boundRole) { own[b.binding], roles[b.role] = b.role, true })
	var out []Binding
	newCluster(objects).bindings(func(b boundRole) {
		if !roles[b.role] {
			return
		}
		mine := own[b.binding] == b.role
		for i := range b.subjects {
			mine = mine && p.Subject.names(&b.subjects[i], b.binding.Namespace)
		}
		if !mine {
			out = append(out, Binding{b.binding, b.role})
		}
	})
	return out
}

// Aggregation is an aggregated ClusterRole that selects a ClusterRole to add, whose rules a controller writes into it.
type Aggregation struct{ By, Role Ref }

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
			out = append(out, Aggregation{By: aggregated, Role: ref})
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

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Aggregated returns the rules of each ClusterRole by name, as the aggregation controller of a cluster writes them; see aggregate.
func Aggregated(roles []rbacv1.ClusterRole) (map[string][]rbacv1.PolicyRule, error) {
	return aggregate(roles)
}

// aggregate returns the rules of each ClusterRole by name. A role with an aggregationRule gets the rules of the roles that its
// selectors match; its own rules are dropped, as the aggregation controller of a cluster overwrites them. Aggregated roles may
// select one another. The result is the smallest stable one, so that a cycle of aggregated roles adds no rules by itself.
func aggregate(roles []rbacv1.ClusterRole) (map[string][]rbacv1.PolicyRule, error) {
	byName := make([]*rbacv1.ClusterRole, 0, len(roles))
	rules := make(map[string][]rbacv1.PolicyRule, len(roles))
	selectors := map[string][]labels.Selector{}
	for i := range roles {
		r := &roles[i]
		byName = append(byName, r)
		if r.AggregationRule == nil {
			rules[r.Name] = r.Rules
			continue
		}
		for j := range r.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[j])
			if err != nil {
				return nil, err
			}
			selectors[r.Name] = append(selectors[r.Name], selector)
		}
	}
	slices.SortFunc(byName, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })

	// Every pass only adds rules, and their number is finite, so the loop ends.
	for changed := true; changed; {
		changed = false
		for _, r := range byName {
			for _, selector := range selectors[r.Name] {
				for _, source := range byName {
					if source == r || !selector.Matches(labels.Set(source.Labels)) {
						continue
					}
					for _, rule := range rules[source.Name] {
						if !hasRule(rules[r.Name], rule) {
							rules[r.Name] = append(rules[r.Name], rule)
							changed = true
						}
					}
				}
			}
		}
	}
	return rules, nil
}

func hasRule(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) })
}

// Aggregate gives each aggregated ClusterRole the rules of the roles that it selects, as the aggregation controller of a cluster stores them.
func (g *Grants) Aggregate() error {
	rules, err := aggregate(g.ClusterRoles)
	if err != nil {
		return err
	}
	g.ClusterRoles = slices.Clone(g.ClusterRoles)
	for i := range g.ClusterRoles {
		g.ClusterRoles[i].Rules = rules[g.ClusterRoles[i].Name]
	}
	return nil
}

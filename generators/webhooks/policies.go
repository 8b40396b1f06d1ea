package webhooks

import (
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Denied returns the rules for the writes that a policy with effect Deny may deny, for Options.Uncovered: users that hold the generic
// permission meet the policy there. Other policies need no rule.
func Denied(spec *v1alpha1.ConditionalPolicySpec) []v1alpha1.ResourceRule {
	if !slices.Contains(spec.Verbs, "create") && !slices.Contains(spec.Verbs, "update") {
		return nil
	}
	if spec.Effect == v1alpha1.PolicyAllow || spec.Effect == v1alpha1.PolicyNoOpinion {
		return nil
	}
	r := rules{}
	for _, rule := range spec.Resources {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				if name == "*" {
					name = "*/*" // In RBAC "*" includes the subresources.
				}
				r.add(group, name)
			}
		}
	}
	return r.list()
}

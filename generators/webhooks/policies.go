package webhooks

import (
	"slices"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Denied returns the rules for what a policy with effect Deny may deny: users that hold the generic permission meet the policy there. Other
// policies need no rule, and a Deny needs none for operations of which it has no verb.
func Denied(spec *v1alpha1.ConditionalPolicySpec) []Rule {
	if spec.Effect == v1alpha1.PolicyAllow || spec.Effect == v1alpha1.PolicyNoOpinion {
		return nil
	}
	out := operationRules{}
	for operations, verbs := range map[Operations][]string{Writes: {"create", "update", "patch"}, Deletions: {"delete", "deletecollection"}} {
		if !slices.ContainsFunc(verbs, func(verb string) bool { return slices.Contains(spec.Verbs, verb) }) {
			continue
		}
		for _, rule := range spec.Resources {
			for _, group := range rule.APIGroups {
				for _, name := range rule.Resources {
					if name == "*" {
						name = "*/*" // In RBAC "*" includes the subresources.
					}
					out.of(operations).add(group, name)
				}
			}
		}
	}
	return out.list()
}

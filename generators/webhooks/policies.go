package webhooks

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Denied returns the rules for what a policy with effect Deny may deny: users that hold the generic permission meet the policy there. Other
// policies need no rule, and a Deny needs none for operations of which it has no verb.
func Denied(spec *v1alpha1.ConditionalPolicySpec) []Rule {
	if spec.Effect == v1alpha1.PolicyAllow || spec.Effect == v1alpha1.PolicyNoOpinion {
		return nil
	}
	has := func(verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool { return slices.Contains(spec.Verbs, verb) })
	}
	out := operationRules{}
	if connections := admission.NamedConnections(admission.PolicyResources(spec)); has("create") && len(connections) > 0 {
		out.of(Connects).add("", connections...)
	}
	for _, rule := range spec.Resources {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				if resource, subresource, _ := strings.Cut(name, "/"); endpoint.IsConnection(group, resource, subresource) {
					continue // It has no other operation.
				}
				if name == "*" {
					name = "*/*" // In RBAC "*" includes the subresources.
				}
				if has("create", "update", "patch") {
					out.of(Writes).add(group, name)
				}
				if has("delete", "deletecollection") {
					out.of(Deletions).add(group, name)
				}
			}
		}
	}
	return out.list()
}

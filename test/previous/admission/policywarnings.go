package admission

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/previous/schema/endpoint"
)

// controllers are groups of which the controllers of Kubernetes are members. The first is every authenticated user.
var controllers = []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + controlNamespace, nodesGroup}

// PolicyWarnings returns warnings for the author of a policy. Of one that denies: about what waits for fieldperm, what the policy does not reach,
// and the controllers that it binds. Of one that allows: that it allows to write policies.
func PolicyWarnings(spec *v1alpha1.ConditionalPolicySpec) []string {
	resources := PolicyResources(spec)
	has := func(verbs ...string) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool { return slices.Contains(spec.Verbs, verb) })
	}
	switch spec.Effect {
	case v1alpha1.PolicyDeny:
	case v1alpha1.PolicyAllow:
		if everyResource(resources) && has("create", "update") {
			return []string{"it is for every resource, ConditionalPolicies included: whoever meets the condition with a policy of its own may write anything: name resources in spec.resources"}
		}
		return nil
	default:
		return nil
	}
	writes, deletions, everything := has("create", "update"), has("delete", "deletecollection"), everyResource(resources)
	var out []string
	if writes && everything {
		out = append(out, everythingText)
	}
	if deletions {
		of := "everything but what rule W4 leaves out"
		if !everything {
			of = some(resourceNames(resources))
		}
		out = append(out, "while fieldperm is down, deletions of "+of+" fail for all users but members of system:masters, also those by controllers: a namespace with such objects is not removed, and nothing collects them as garbage, until fieldperm runs: name as few resources as you can in spec.resources")
	}
	if names := NamedConnections(resources); has("create") && len(names) > 0 {
		out = append(out, "while fieldperm is down, no user but members of system:masters can connect to a Pod by "+strings.Join(names, ", "))
	}
	if bound := boundControllers(spec.Subjects); deletions && len(bound) > 0 {
		out = append(out, "it denies deletions by the controllers of Kubernetes too, as members of "+strings.Join(bound, ", ")+": what it denies stays when its namespace or its owner is deleted: let the condition be false for the group \"system:serviceaccounts:kube-system\"")
	}
	if names := FloorResources(resources); (writes || deletions) && len(names) > 0 {
		out = append(out, "no Deny reaches "+strings.Join(names, ", ")+", which the control plane needs to go on running (rule W4): take it out of spec.resources")
	}
	return out
}

// NamedConnections returns the connections to Pods that the resources of a policy name, by themselves or by a wildcard.
func NamedConnections(rules []v1alpha1.ResourceRule) []string {
	var out []string
	for _, ref := range endpoint.Connections() {
		name := ref.Name()
		if slices.ContainsFunc(rules, func(rule v1alpha1.ResourceRule) bool {
			return (slices.Contains(rule.APIGroups, ref.Group) || slices.Contains(rule.APIGroups, "*")) &&
				slices.ContainsFunc([]string{"*", name, "*/" + ref.Subresource}, func(named string) bool { return slices.Contains(rule.Resources, named) })
		}) {
			out = append(out, name)
		}
	}
	return out
}

// PolicyResources returns the resources of a policy without their versions.
func PolicyResources(spec *v1alpha1.ConditionalPolicySpec) []v1alpha1.ResourceRule {
	out := make([]v1alpha1.ResourceRule, 0, len(spec.Resources))
	for _, r := range spec.Resources {
		out = append(out, v1alpha1.ResourceRule{APIGroups: r.APIGroups, Resources: r.Resources})
	}
	return out
}

// boundControllers returns the subjects that the controllers of Kubernetes are members of.
func boundControllers(subjects []v1alpha1.Subject) []string {
	var out []string
	for _, s := range subjects {
		if s.Kind == "Group" && slices.Contains(controllers, s.Name) {
			out = append(out, s.Name)
		}
	}
	return out
}

// resourceNames returns the resources of rules as RESOURCE.GROUP, and RESOURCE for the core group.
func resourceNames(rules []v1alpha1.ResourceRule) []string {
	var out []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				if group != "" {
					name += "." + group
				}
				out = append(out, name)
			}
		}
	}
	return out
}

// policyWarnings returns the warnings about the JSON of a policy, none if it cannot be decoded, which is a fault.
func policyWarnings(raw []byte) []error {
	var policy v1alpha1.ConditionalPolicy
	if json.Unmarshal(raw, &policy) != nil {
		return nil
	}
	var out []error
	for _, text := range PolicyWarnings(&policy.Spec) {
		out = append(out, warning(text))
	}
	return out
}

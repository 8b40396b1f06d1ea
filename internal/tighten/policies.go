package tighten

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// policies says which ConditionalPolicies decide on the writes of the subject, besides the roles, where the proposal takes update and patch.
// No policy is changed. A Deny of a verb that takes the place of update and patch is a loss: update and patch do not need that verb.
func (p *Proposal) policies(options *Options, granting *granting, groups []string) {
	if len(p.Change) == 0 {
		return
	}
	groups = slices.Concat(groups, p.Subject.Groups())
	if p.Subject.Kind == rbacv1.GroupKind {
		groups = []string{p.Subject.Name}
	}
	taken := p.taken(options.Decides)
	for i := range options.Policies {
		policy := &options.Policies[i]
		if !v1alpha1.NewSubjects(policy.Spec.Subjects).Include(p.Subject.Username(), groups) {
			continue
		}
		here := policyOn(policy, taken)
		if len(here) == 0 {
			continue
		}
		name := fmt.Sprintf("%s %q", v1alpha1.ConditionalPolicyKind, policy.Name)
		where := strings.Join(here, ", ")
		if decides := decidesOn(policy); len(decides) > 0 {
			p.Policies = append(p.Policies, fmt.Sprintf("%s, with %s on %s of %s: %s", name, policy.Spec.Effect, strings.Join(decides, ", "), where, means(policy.Spec.Effect, decides)))
		}
		if policy.Spec.Effect == v1alpha1.PolicyAllow || policy.Spec.Effect == v1alpha1.PolicyNoOpinion {
			continue
		}
		if denied := granting.granted(policy); len(denied) > 0 {
			p.Losses = append(p.Losses, fmt.Sprintf("%s may deny %s on %s, which update and patch do not need", name, strings.Join(denied, ", "), where))
		}
	}
}

// means says what an effect on verbs means for the proposal.
func means(effect v1alpha1.PolicyEffect, on []string) string {
	switch effect {
	case v1alpha1.PolicyAllow:
		text := "writes that it allowed are in the evidence"
		if slices.Contains(on, updateVerb) {
			text += "; the subject may go on writing under its condition"
		}
		if slices.ContainsFunc(on, isGranular) {
			text += "; an observation counts its verbs as held, and writes may depend on it after the second step"
		}
		return text
	case v1alpha1.PolicyNoOpinion:
		return "it takes away what other policies allow, and nothing of the Roles"
	case v1alpha1.PolicyDeny:
	}
	return "it denies before the second step and after it"
}

// decidesOn returns the verbs of a policy by which updates are allowed or denied. A Deny of granular verbs says nothing of holders of update.
func decidesOn(policy *v1alpha1.ConditionalPolicy) []string {
	denies := policy.Spec.Effect != v1alpha1.PolicyAllow && policy.Spec.Effect != v1alpha1.PolicyNoOpinion
	return slices.DeleteFunc(slices.Clone(policy.Spec.Verbs), func(verb string) bool {
		generic := verb == updateVerb || verb == patchVerb
		return !generic && (denies || !isGranular(verb))
	})
}

// taken returns the resources on which rules of the subject itself lose update and patch, as the rules name them.
func (p *Proposal) taken(decides func(Resource) Decides) []Resource {
	var out []Resource
	for i := range p.before {
		if p.before[i].Group != "" {
			continue
		}
		for _, rule := range p.before[i].writes() {
			for _, group := range rule.APIGroups {
				for _, name := range withoutFinalizers(rule.Resources) {
					if r := (Resource{group, name}); decides(r) != DecidesNot {
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

// granted returns the granular verbs of a policy that the proposal grants on a resource of the policy.
func (g *granting) granted(policy *v1alpha1.ConditionalPolicy) []string {
	var out []string
	for at, held := range g.verbs {
		if len(policyOn(policy, []Resource{at.resource})) == 0 {
			continue
		}
		for _, verb := range policy.Spec.Verbs {
			if held[verb] && !slices.Contains(out, verb) {
				out = append(out, verb)
			}
		}
	}
	slices.Sort(out)
	return out
}

// policyOn returns where a policy is about resources, sorted.
func policyOn(policy *v1alpha1.ConditionalPolicy, resources []Resource) []string {
	var out []string
	for _, of := range policy.Spec.Resources {
		for _, group := range of.APIGroups {
			for _, name := range of.Resources {
				for _, r := range resources {
					if both, ok := common(Resource{group, name}, r); ok && !slices.Contains(out, both.String()) {
						out = append(out, both.String())
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// common returns what two resources have in common, of which each may have "*" in it.
func common(a, b Resource) (Resource, bool) {
	if a.Group == rbacv1.APIGroupAll {
		a.Group = b.Group
	}
	if b.Group != rbacv1.APIGroupAll && b.Group != a.Group {
		return Resource{}, false
	}
	for _, pair := range [][2]string{{a.Name, b.Name}, {b.Name, a.Name}} {
		wide, narrow := pair[0], pair[1]
		_, subresource, ok := strings.Cut(narrow, "/")
		if wide == narrow || wide == rbacv1.ResourceAll || ok && wide == "*/"+subresource {
			return Resource{a.Group, narrow}, true
		}
	}
	return Resource{}, false
}

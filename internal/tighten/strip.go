package tighten

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	updateVerb = "update"
	patchVerb  = "patch"
	createVerb = "create"
	getVerb    = "get"
	// anyFinalizers is the virtual resource of blockOwnerDeletion in any resource of a group. It is never written.
	anyFinalizers    = "*/finalizers"
	finalizersSuffix = "/finalizers"
)

func grantsUpdate(rule *rbacv1.PolicyRule) bool {
	return len(rule.Resources) > 0 && slices.ContainsFunc(rule.Verbs, func(verb string) bool {
		return verb == updateVerb || verb == patchVerb || verb == rbacv1.VerbAll
	})
}

// matches reports whether a rule is about a resource.
func matches(rule *rbacv1.PolicyRule, r Resource) bool {
	if !slices.Contains(rule.APIGroups, r.Group) && !slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) {
		return false
	}
	if slices.Contains(rule.Resources, r.Name) || slices.Contains(rule.Resources, rbacv1.ResourceAll) {
		return true
	}
	_, subresource, ok := strings.Cut(r.Name, "/")
	return ok && slices.Contains(rule.Resources, "*/"+subresource)
}

// stripping takes update and patch out of rules.
type stripping struct {
	// decides reports whether fieldperm decides on writes of a resource. Where it does not, update and patch stay.
	decides func(r Resource) Decides
	// asked are resources among these that Options.Keep names.
	asked []Resource
	// staying are resources on which it does not: those of Options.Undecided and of Options.Keep, and those in the evidence. A rule with "*"
	// covers them without their names.
	staying []Resource
	// impersonates: the subject may use constrained impersonation, which asks about further verbs of each resource.
	impersonates bool
	// losses say what is lost besides update and patch, kept what is not taken.
	losses, kept []string
}

// Decides says whether granular verbs can take the place of update and patch on a resource.
type Decides int

const (
	// DecidesNot is for resources of aggregated API servers, virtual ones, and those that admission does not see.
	DecidesNot Decides = iota
	// DecidesYes is for resources with fields that have verbs.
	DecidesYes
	// DecidesUnserved is for resources that the API server does not serve.
	DecidesUnserved
)

// rules returns the rules without update and patch, except where fieldperm does not decide, and whether anything was taken.
func (s *stripping) rules(role Ref, rules []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, bool) {
	out, taken := []rbacv1.PolicyRule{}, false
	for i := range rules {
		rule := &rules[i]
		if !grantsUpdate(rule) {
			out = append(out, *rule.DeepCopy())
			continue
		}
		rest, changed := s.rule(role, rule)
		out = append(out, rest...)
		taken = taken || changed
	}
	return out, taken
}

func (s *stripping) rule(role Ref, rule *rbacv1.PolicyRule) ([]rbacv1.PolicyRule, bool) {
	kept, all := s.keeps(rule)
	generic := slices.DeleteFunc([]string{updateVerb, patchVerb}, func(verb string) bool {
		return !slices.Contains(rule.Verbs, verb) && !slices.Contains(rule.Verbs, rbacv1.VerbAll)
	})
	names := map[string][]string{}
	for _, r := range kept {
		if r.Name != anyFinalizers {
			names[s.reason(r)] = append(names[s.reason(r)], r.String())
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(names)) {
		s.kept = append(s.kept, fmt.Sprintf("%s keeps %s on %s: %s", role, strings.Join(generic, " and "), strings.Join(names[reason], ", "), reason))
	}
	if all {
		return []rbacv1.PolicyRule{*rule.DeepCopy()}, false
	}
	var out []rbacv1.PolicyRule
	stripped := rule.DeepCopy()
	stripped.Verbs = s.verbs(role, rule)
	if len(stripped.Verbs) > 0 {
		out = append(out, *stripped)
	}
	first := len(out)
	for _, r := range kept {
		stays := rule.DeepCopy()
		stays.APIGroups, stays.Resources, stays.Verbs, stays.NonResourceURLs = []string{r.Group}, []string{r.Name}, slices.Clone(generic), nil
		if n := len(out) - 1; n >= first && slices.Equal(out[n].APIGroups, stays.APIGroups) {
			out[n].Resources = append(out[n].Resources, r.Name)
		} else {
			out = append(out, *stays)
		}
	}
	return out, true
}

// reason says why update and patch stay on a resource.
func (s *stripping) reason(r Resource) string {
	if slices.Contains(s.asked, r) {
		return "--keep-update names it"
	}
	return "fieldperm does not decide on its writes"
}

// keeps returns the resources of a rule whose update and patch stay, and whether these are all.
func (s *stripping) keeps(rule *rbacv1.PolicyRule) (kept []Resource, all bool) {
	all = true
	for _, group := range rule.APIGroups {
		for _, name := range rule.Resources {
			r := Resource{group, name}
			switch {
			case strings.HasSuffix(name, finalizersSuffix):
				kept = append(kept, r)
			case group == rbacv1.APIGroupAll || name == rbacv1.ResourceAll || strings.HasPrefix(name, "*/"):
				all = false
				if name == rbacv1.ResourceAll {
					kept = append(kept, Resource{group, anyFinalizers})
				}
			case s.decides(r) == DecidesNot:
				kept = append(kept, r)
			default:
				all = false
			}
		}
	}
	for _, r := range s.staying {
		if matches(rule, r) && !slices.Contains(kept, r) {
			kept = append(kept, r)
		}
	}
	return kept, all
}

// verbs returns the verbs of a rule without update and patch. "*" becomes the verbs that are left of it.
func (s *stripping) verbs(role Ref, rule *rbacv1.PolicyRule) []string {
	out := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool {
		return verb == updateVerb || verb == patchVerb || verb == rbacv1.VerbAll
	})
	if !slices.Contains(rule.Verbs, rbacv1.VerbAll) {
		return out
	}
	for _, verb := range otherVerbs(rule) {
		if !slices.Contains(out, verb) {
			out = append(out, verb)
		}
	}
	names := strings.Join(rule.Resources, ", ")
	s.kept = append(s.kept, fmt.Sprintf(`%s: the verb "*" on %s becomes %s. It also granted granular:*, in place of which there are the granular verbs of the evidence`, role, names, strings.Join(out, ", ")))
	if slices.ContainsFunc(rule.APIGroups, isForeign) {
		s.losses = append(s.losses, fmt.Sprintf(`%s: the verb "*" on %s also grants verbs that other programs than kube-apiserver ask about. Those that the role does not name are lost`, role, names))
	}
	if s.impersonates {
		s.losses = append(s.losses, fmt.Sprintf(`%s: the verb "*" on %s also grants impersonate-on:MODE:VERB, which constrained impersonation needs. It is lost if the role does not name it`, role, names))
	}
	return out
}

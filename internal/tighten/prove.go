package tighten

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/verbs"
)

// Prove returns the rights that a proposal adds to what the subject holds now, none for a proposal without new access. It looks only at
// the objects, not at how they were made. A granular verb is covered by update or patch on the same resource and names, in the same
// namespace.
func Prove(p *Proposal, objects *rbac.Grants, groups []string) []string {
	before := Held(objects, p.Subject, groups)
	added := newCluster(&p.Add)
	var out []string
	prove := func(scope string, what Ref, rules []rbacv1.PolicyRule) {
		var held []rbacv1.PolicyRule
		for i := range before {
			if before[i].Scope == "" || before[i].Scope == scope {
				held = append(held, before[i].Rules...)
			}
		}
		for _, rule := range rules {
			for _, single := range validation.BreakdownRule(rule) {
				if !covered(held, single) {
					out = append(out, fmt.Sprintf("%s: %s", what, describe(&single, scope)))
				}
			}
		}
	}
	added.bindings(func(b boundRole) {
		rules, ok := added.rules(b.role)
		if !ok {
			out = append(out, fmt.Sprintf("%s: its role %s is not in the proposal", b.binding, b.role))
			return
		}
		if !slices.Equal(b.subjects, []rbacv1.Subject{p.Subject.RBAC()}) {
			out = append(out, fmt.Sprintf("%s: binds others than the subject", b.binding))
		}
		prove(b.binding.Namespace, b.role, rules)
	})
	for i := range p.Change {
		ch := &p.Change[i]
		if ch.RoleAfter != nil {
			if ok, more := validation.Covers(ch.Role.Rules, ch.RoleAfter.Rules); !ok {
				out = append(out, fmt.Sprintf("%s: %d rules more than before, the first %s", ch.Ref, len(more), describe(&more[0], ch.Ref.Namespace)))
			}
			continue
		}
		for _, named := range ch.BindingAfter.Subjects {
			if !slices.Contains(ch.Binding.Subjects, named) {
				out = append(out, fmt.Sprintf("%s: %s %q more than before", ch.Ref, named.Kind, named.Name))
			}
		}
	}
	return out
}

// covered reports whether rules cover one that has one verb, resource and name.
func covered(held []rbacv1.PolicyRule, single rbacv1.PolicyRule) bool {
	if ok, _ := validation.Covers(held, []rbacv1.PolicyRule{single}); ok {
		return true
	}
	verb := single.Verbs[0]
	if verb != verbs.Marker && !strings.HasPrefix(verb, verbs.Prefix) {
		return false
	}
	generic := []string{updateVerb, patchVerb}
	if name, _, ok := strings.Cut(verb, "("); ok {
		generic = append(generic, name)
	}
	if verb != verbs.Marker {
		generic = append(generic, verbs.All().String())
	}
	return slices.ContainsFunc(generic, func(verb string) bool {
		single.Verbs = []string{verb}
		ok, _ := validation.Covers(held, []rbacv1.PolicyRule{single})
		return ok
	})
}

func describe(r *rbacv1.PolicyRule, scope string) string {
	if len(r.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s on %s", strings.Join(r.Verbs, ","), strings.Join(r.NonResourceURLs, ","))
	}
	out := fmt.Sprintf("%s on %s", strings.Join(r.Verbs, ","), Resource{strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ",")})
	if len(r.ResourceNames) > 0 {
		out += fmt.Sprintf(" %q", r.ResourceNames)
	}
	if scope != "" {
		out += " in namespace " + scope
	}
	return out
}

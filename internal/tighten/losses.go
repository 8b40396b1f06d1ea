package tighten

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/fieldperm/fieldperm/verbs"
)

// guard is a kind of RBAC object whose writes kube-apiserver may refuse after a proposal, "" for all namespaces. It lets a user grant only
// what the user holds itself, and granular verbs are no update and no patch there.
type guard struct {
	resource Resource
	scope    string
}

// guarding are the RBAC objects with the verb that lets a user grant what it does not hold, and the resources on which it has to be held.
var guarding = []struct {
	name, verb string
	on         []string
	namespaced bool
}{
	{"clusterroles", escalateVerb, []string{"clusterroles"}, false},
	{"roles", escalateVerb, []string{"roles"}, true},
	{"clusterrolebindings", bindVerb, []string{"clusterroles"}, false},
	{"rolebindings", bindVerb, []string{"clusterroles", "roles"}, true},
}

// maxLost bounds the rights that a loss lists.
const maxLost = 5

// guards finds the RBAC objects that the subject may write after the proposal, and whose rights it no longer holds.
func (p *Proposal) guards() {
	scopes := []string{""}
	for i := range p.before {
		if scope := p.before[i].Scope; !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes)
	for _, scope := range scopes {
		after := heldIn(p.after, scope)
		lost := lostUpdates(heldIn(p.before, scope), after)
		if len(lost) == 0 {
			continue
		}
		for _, g := range guarding {
			r := Resource{rbacv1.GroupName, g.name}
			if scope != "" && !g.namespaced || slices.Contains(p.guarded, guard{r, ""}) || !grantsFreely(after, r, g.verb, g.on) {
				continue
			}
			p.guarded = append(p.guarded, guard{r, scope})
			p.Losses = append(p.Losses, fmt.Sprintf("%s: the subject holds no %s, so kube-apiserver lets it grant only what it holds itself, and granular verbs are not update and patch there. It can no longer grant %s: --keep-update keeps them",
				where(&rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Name}}, scope), g.verb, listed(lost, scope)))
		}
	}
}

// lostUpdates returns the rights to update and patch that are held before and not after.
func lostUpdates(before, after []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	writes := Grant{Rules: before}
	_, lost := validation.Covers(after, writes.writes())
	return slices.DeleteFunc(lost, func(rule rbacv1.PolicyRule) bool { return !grantsUpdate(&rule) })
}

// grantsFreely reports whether rules let their holder write an RBAC object without the verb with which kube-apiserver does not compare the
// rights in it.
func grantsFreely(rules []rbacv1.PolicyRule, r Resource, verb string, on []string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		if !matches(&rule, r) || !slices.ContainsFunc(rule.Verbs, grantsContent) {
			return false
		}
		need := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: on, Verbs: []string{verb}}
		if verb == escalateVerb {
			need.ResourceNames = rule.ResourceNames // Those of a binding are not the names of roles.
		}
		ok, _ := validation.Covers(rules, []rbacv1.PolicyRule{need})
		return !ok
	})
}

// grantsContent reports whether a verb lets its holder write more of an object than what the garbage collector writes.
func grantsContent(verb string) bool {
	switch verb {
	case createVerb, updateVerb, patchVerb, rbacv1.VerbAll:
		return true
	}
	return isGranular(verb) && verb != verbs.Marker && !isGarbageCollection(verb)
}

// isGarbageCollection reports whether a verb covers only fields that the garbage collector writes. kube-apiserver lets these be changed
// without a look at the rights in an object.
func isGarbageCollection(verb string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(verb, verbs.Prefix), "(")
	return name == "ownerReferences" || name == "deletionBlock" || name == "finalizers" || name == "finalizer"
}

// listed describes the first rights of a list.
func listed(rules []rbacv1.PolicyRule, scope string) string {
	var out []string
	for i := range rules {
		if text := describe(&rules[i], scope); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if n := len(out) - maxLost; n > 0 {
		out = append(out[:maxLost], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}

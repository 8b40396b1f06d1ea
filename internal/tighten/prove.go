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

// Proof has the rights that a proposal adds to what the subject holds without it. The zero Proof has none.
type Proof struct {
	// New are rights that nothing covers which the subject holds.
	New []string
	// Read are resources that the subject may read because the marker needs get, without holding patch, whose answer is the object, or a verb to
	// read.
	Read []string
}

// Prove finds the rights that a proposal adds. It looks only at the objects, not at how they were made. A granular verb is covered by
// update or patch on the same resource and names, in the same namespace, and granular:creation by create, unless it may pass a barrier: then
// only granular verbs cover it.
// What an earlier proposal has added covers none of it.
func Prove(p *Proposal, objects *rbac.Grants, groups []string, barriers *Barriers) *Proof {
	before := Held(p.without(objects), p.Subject, groups)
	added := newCluster(&p.Add)
	out := &Proof{}
	fault := func(format string, args ...any) { out.New = append(out.New, fmt.Sprintf(format, args...)) }
	added.bindings(func(b boundRole) {
		rules, ok := added.rules(b.role)
		if !ok {
			fault("%s: its role %s is not in the proposal", b.binding, b.role)
			return
		}
		if !slices.Equal(b.subjects, []rbacv1.Subject{p.Subject.RBAC()}) {
			fault("%s: binds others than the subject", b.binding)
		}
		h := &holding{rules: heldIn(before, b.binding.Namespace), barriers: barriers}
		for i := range rules {
			h.prove(out, b, &rules[i])
		}
	})
	for i := range p.Change {
		ch := &p.Change[i]
		if ch.RoleAfter != nil {
			if ok, more := validation.Covers(ch.Role.Rules, ch.RoleAfter.Rules); !ok {
				fault("%s: %d rules more than before, the first %s", ch.Ref, len(more), describe(&more[0], ch.Ref.Namespace))
			}
			continue
		}
		for _, named := range ch.BindingAfter.Subjects {
			if !slices.Contains(ch.Binding.Subjects, named) {
				fault("%s: %s %q more than before", ch.Ref, named.Kind, named.Name)
			}
		}
	}
	slices.Sort(out.Read)
	out.Read = slices.Compact(out.Read)
	return out
}

// without returns objects without those that have the names of objects to add: an earlier step may have made them, and a barrier may have
// been made since, or rights may have been taken away. A proposal that changes nothing is what is there already.
func (p *Proposal) without(objects *rbac.Grants) *rbac.Grants {
	if len(p.Change) == 0 {
		return objects
	}
	own := map[Ref]bool{}
	for _, named := range p.Added() {
		own[named.Ref] = true
	}
	return without(objects, func(ref Ref) bool { return own[ref] })
}

// heldIn returns the rules that hold in a namespace, "" for all.
func heldIn(grants []Grant, scope string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range grants {
		if grants[i].Scope == "" || grants[i].Scope == scope {
			out = append(out, grants[i].Rules...)
		}
	}
	return out
}

// holding is what a subject holds in one scope.
type holding struct {
	rules    []rbacv1.PolicyRule
	barriers *Barriers
}

// prove adds what a rule of a binding adds.
func (h *holding) prove(out *Proof, b boundRole, rule *rbacv1.PolicyRule) {
	for _, single := range validation.BreakdownRule(*rule) {
		if single.Verbs[0] == getVerb && slices.Contains(rule.Verbs, verbs.Marker) {
			continue // reads looks at it.
		}
		if ok, passed := h.covers(single); !ok {
			out.New = append(out.New, fmt.Sprintf("%s: %s%s", b.role, describe(&single, b.binding.Namespace), passes(passed)))
		}
	}
	for _, group := range rule.APIGroups {
		for _, name := range rule.Resources {
			one := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}, ResourceNames: rule.ResourceNames, Verbs: rule.Verbs}
			if h.reads(&one) {
				out.Read = append(out.Read, fmt.Sprintf("%s: may also read %s", b.role, where(&one, b.binding.Namespace)))
			}
		}
	}
}

// passes is the end of a text about a verb.
func passes(barriers []string) string {
	if len(barriers) == 0 {
		return ""
	}
	return ": it may pass " + strings.Join(barriers, ", ") + ", which update and patch do not pass"
}

// covers reports whether a rule that has one verb, resource and name is covered. If not, the second result has the barriers because of
// which update and patch do not count.
func (h *holding) covers(single rbacv1.PolicyRule) (ok bool, passed []string) {
	has := func(verb string) bool {
		single.Verbs = []string{verb}
		ok, _ := validation.Covers(h.rules, []rbacv1.PolicyRule{single})
		return ok
	}
	verb := single.Verbs[0]
	if has(verb) {
		return true, nil
	}
	if !isGranular(verb) || len(single.Resources) == 0 {
		return false, nil
	}
	passed = h.barriers.Passed(Resource{single.APIGroups[0], single.Resources[0]}, verb)
	if len(passed) > 0 {
		return false, passed
	}
	generic := []string{updateVerb, patchVerb}
	if verb == verbs.Creation().String() {
		generic = []string{createVerb}
	}
	if name, _, ok := strings.Cut(verb, "("); ok {
		generic = append(generic, name)
	}
	if verb != verbs.Marker {
		generic = append(generic, verbs.All().String())
	}
	return slices.ContainsFunc(generic, has), nil
}

func isGranular(verb string) bool {
	return verb == verbs.Marker || strings.HasPrefix(verb, verbs.Prefix)
}

// covered reports whether what is held covers a verb where a rule holds.
func (h *holding) covered(rule *rbacv1.PolicyRule, verb string) bool {
	one := *rule
	one.Verbs = []string{verb}
	ok, _ := validation.Covers(h.rules, []rbacv1.PolicyRule{one})
	return ok
}

// reads reports whether a rule about one resource, which has get beside the marker, lets its holder read objects, and what is held does not. The
// answer to a patch that changes nothing is the object. An object also shows what its subresources show.
func (h *holding) reads(rule *rbacv1.PolicyRule) bool {
	if !slices.Contains(rule.Verbs, getVerb) {
		return false
	}
	whole := *rule
	main, _, _ := strings.Cut(rule.Resources[0], "/")
	whole.Resources = []string{main}
	return !slices.ContainsFunc([]string{patchVerb, getVerb, "list", "watch"}, func(verb string) bool {
		return h.covered(rule, verb) || h.covered(&whole, verb)
	})
}

func describe(r *rbacv1.PolicyRule, scope string) string {
	if len(r.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s on %s", strings.Join(r.Verbs, ","), strings.Join(r.NonResourceURLs, ","))
	}
	return strings.Join(r.Verbs, ",") + " on " + where(r, scope)
}

// where describes the resource and the names of a rule in a namespace.
func where(r *rbacv1.PolicyRule, scope string) string {
	out := Resource{strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ",")}.String()
	if len(r.ResourceNames) > 0 {
		out += fmt.Sprintf(" %q", r.ResourceNames)
	}
	if scope != "" {
		out += " in namespace " + scope
	}
	return out
}

// Empty reports whether there is no new access.
func (p *Proof) Empty() bool { return len(p.New)+len(p.Read) == 0 }

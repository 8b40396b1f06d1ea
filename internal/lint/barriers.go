package lint

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// resource is a resource of an API group, "*" for any.
type resource struct{ group, name string }

// barriers finds barriers whose verb no role of the files has.
func (l *linter) barriers() {
	rules := l.rules()
	for _, o := range l.objects {
		for _, u := range o.uses() {
			verb, err := verbs.New(u.Verb)
			if !u.IsBarrier() || err != nil {
				continue
			}
			at := resource{u.group, l.resourceOf(u)}
			if u.kind == "" {
				at = resource{"*", "*"} // A fragment is in many kinds.
			}
			if held(rules, []resource{at}, verb) {
				continue
			}
			l.report(o, u.pointer("verb"), u.where(), finding.Finding{
				Rule: barrierNoHolder, Level: finding.Warning, Message: fmt.Sprintf("verb %q is a barrier, and no role of the files has it on %s", verb, at),
				Cure: "grant it in a Role or a ClusterRole", About: u.Verb,
			})
		}
		for i := range o.docs.Uncovered {
			l.set(o, rules, i)
		}
	}
}

// set reports the verbs of an UncoveredPermissionSet that no role has on any of its resources.
func (l *linter) set(o *object, rules []rbacv1.PolicyRule, at int) {
	spec := &o.docs.Uncovered[at].Set.Spec
	var on []resource
	for _, r := range spec.Resources {
		for _, group := range r.APIGroups {
			for _, name := range r.Resources {
				on = append(on, resource{group, name})
			}
		}
	}
	if len(on) == 0 {
		on = []resource{{"*", "*"}}
	}
	for i, text := range spec.UncoveredPermissions {
		verb, err := verbs.Parse(text)
		if err != nil {
			continue
		}
		bearing := l.bearing(on, verb)
		if held(rules, bearing, verb) {
			continue
		}
		var names []string
		for _, r := range bearing {
			names = append(names, r.String())
		}
		pointer := fmt.Sprintf("/spec/uncoveredPermissions/%d", i)
		l.report(o, pointer, fmt.Sprintf("uncoveredPermissions[%d]", i), finding.Finding{
			Rule: barrierNoHolder, Level: finding.Warning, Message: fmt.Sprintf("verb %q is a barrier, and no role of the files has it on %s", text, list(names)),
			Cure: "grant it in a Role or a ClusterRole", About: text,
		})
	}
}

// bearing returns the resources with a field that has the verb. If none is known, it returns the resources as the set names them.
func (l *linter) bearing(on []resource, verb verbs.Verb) []resource {
	var out []resource
	for _, k := range l.compiled.Kinds() {
		trace := k.Trace()
		if trace == nil || !slices.ContainsFunc(on, func(r resource) bool {
			whole, _, _ := strings.Cut(r.name, "/")
			return (r.group == "*" || r.group == k.Group) && (whole == "*" || whole == trace.Resource.Resource)
		}) {
			continue
		}
		r := resource{k.Group, trace.Resource.Resource}
		bears := verb == verbs.All()
		k.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
			bears = bears || slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool { return p.Base().Name() == verb.Name() })
		})
		if bears && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return on
	}
	slices.SortFunc(out, func(a, b resource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// String returns the resource as RBAC documentation writes it: deployments.apps.
func (r resource) String() string {
	if r.group == "" {
		return r.name
	}
	return r.name + "." + r.group
}

// rules returns the rules of all roles. Those of an aggregated ClusterRole are in the files too, in the roles that it is made of.
func (l *linter) rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range l.grants.Roles {
		out = append(out, l.grants.Roles[i].Rules...)
	}
	for i := range l.grants.ClusterRoles {
		out = append(out, l.grants.ClusterRoles[i].Rules...)
	}
	return out
}

// held reports whether a rule grants a verb on one of the resources, or on a subresource of it, which writes the same object. A verb passes a
// barrier with its parameter or without, and so does the verb "*".
func held(rules []rbacv1.PolicyRule, on []resource, barrier verbs.Verb) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		passes := slices.ContainsFunc(rule.Verbs, func(text string) bool {
			v, err := verbs.Parse(text)
			return text == rbacv1.VerbAll || err == nil && passes(v, barrier)
		})
		return passes && slices.ContainsFunc(on, func(r resource) bool {
			return matches(rule.APIGroups, r.group) && slices.ContainsFunc(rule.Resources, func(name string) bool {
				whole, _, _ := strings.Cut(name, "/")
				wanted, subresource, _ := strings.Cut(r.name, "/")
				return r.name == "*" || whole == "*" || (whole == wanted || wanted == "*") && (subresource == "" || name == r.name)
			})
		})
	})
}

func matches(groups []string, group string) bool {
	return group == "*" || slices.Contains(groups, group) || slices.Contains(groups, rbacv1.APIGroupAll)
}

// passes reports whether a verb passes a barrier. A barrier without a parameter is one for each parameter, so any parameter counts as a holder.
func passes(v, barrier verbs.Verb) bool {
	if v == barrier || v.Name() == barrier.Name() && (!v.HasParameter() || !barrier.HasParameter()) {
		return true
	}
	// Below the barrier at the root every granular verb counts.
	return barrier == verbs.All() && strings.HasPrefix(v.String(), verbs.Prefix)
}

// resourceOf returns the resource of the kind of an entry.
func (l *linter) resourceOf(u *use) string {
	if u.definition != nil {
		return u.definition.plural
	}
	for _, o := range l.objects {
		if d := o.definition; d != nil && d.group == u.group && d.kind == u.kind {
			return d.plural
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(runtimeschema.GroupVersionKind{Group: u.group, Kind: u.kind})
	return plural.Resource
}

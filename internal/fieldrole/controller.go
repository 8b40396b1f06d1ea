package fieldrole

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/rolemarkers"
)

// replaced is a resource on which granular verbs take the place of generic ones.
type replaced struct {
	group, resource string
	// generic are the verbs whose place is taken, granular those that take it.
	generic, granular []string
	rules             []*Rule
	// fields are those of all markers, by version.
	fields map[*Target][]string
	order  []*Target
	// found means that the plain role has one of the generic verbs on the resource, whose place is taken.
	found bool
}

// Controller returns the roles of a controller with granular verbs, and comments about them. All other rules are those of the plain roles.
func (k *Kinds) Controller(ctx context.Context, m *rolemarkers.Markers, o Options) (roles []any, comments []string, errs []error) {
	all, errs := k.replaced(ctx, m.Fields, o)
	if len(errs) > 0 {
		return nil, nil, errs
	}
	for i := range m.RBAC {
		for _, r := range all {
			if err := r.meet(&m.RBAC[i]); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 {
		return nil, nil, errs
	}
	for _, role := range m.Roles {
		switch role := role.(type) {
		case rbacv1.ClusterRole:
			role.Rules = rewrite(role.Rules, all)
			roles = append(roles, role)
		case rbacv1.Role:
			role.Rules = rewrite(role.Rules, all)
			roles = append(roles, role)
		default:
			return nil, nil, []error{fmt.Errorf("role is a %T: report this as a fault of fieldperm", role)}
		}
	}
	for i := range m.Fields {
		f := &m.Fields[i]
		for _, r := range all {
			if !r.found && slices.Contains(f.Groups, r.group) && slices.Contains(f.Resources, r.resource) {
				errs = append(errs, f.Fault(r.resource, "resource %q of group %q: the plain role does not grant %s on it: add a marker +kubebuilder:rbac, which controller-gen does not read in the comment of a function, or remove this marker", r.resource, r.group, strings.Join(r.generic, " or ")))
			}
		}
	}
	if len(errs) > 0 {
		return nil, nil, errs
	}
	for _, r := range all {
		for _, rule := range r.rules {
			comments = append(comments, rule.Comments()...)
		}
		for _, rule := range r.rules {
			if text := rule.createsText(); text != "" && slices.Contains(r.generic, "create") && rule.Subresource == "" {
				comments = append(comments, text)
			}
		}
	}
	for i := range comments {
		comments[i] = line(comments[i])
	}
	return roles, comments, nil
}

// replaced finds the verbs of all markers. Markers about the same resource count together.
func (k *Kinds) replaced(ctx context.Context, all []rolemarkers.Fields, o Options) ([]*replaced, []error) {
	var out []*replaced
	var errs []error
	for i := range all {
		f := &all[i]
		for _, group := range f.Groups {
			for _, resource := range f.Resources {
				at := slices.IndexFunc(out, func(r *replaced) bool { return r.group == group && r.resource == resource })
				if at < 0 {
					at = len(out)
					out = append(out, &replaced{group: group, resource: resource, fields: map[*Target][]string{}})
				}
				errs = append(errs, k.forMarker(ctx, out[at], f, o)...)
			}
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	for _, r := range out {
		_, subresource, _ := strings.Cut(r.resource, "/")
		for _, t := range r.order {
			rule, err := t.Through(ctx, subresource, r.fields[t], o)
			if err != nil {
				return nil, []error{err} // Each field alone has a rule.
			}
			r.rules = append(r.rules, rule)
			r.granular = distinct(append(r.granular, rule.Verbs...))
		}
	}
	return out, nil
}

// forMarker adds the fields for one resource of a marker.
func (k *Kinds) forMarker(ctx context.Context, r *replaced, f *rolemarkers.Fields, o Options) []error {
	name, subresource, _ := strings.Cut(r.resource, "/")
	versions := f.Versions
	if len(versions) == 0 {
		versions = []string{""}
	}
	var errs []error
	for _, v := range versions {
		t, err := k.Resource(r.group, name, v)
		if err != nil {
			part := name
			if v != "" {
				part = v
			}
			return append(errs, f.Fault(part, "%v", err))
		}
		for _, field := range f.Fields {
			if _, err := t.Through(ctx, subresource, []string{field}, o); err != nil {
				errs = append(errs, f.Fault(field, "%v", err))
			}
		}
		at := slices.IndexFunc(r.order, func(have *Target) bool { return have.GroupVersionKind == t.GroupVersionKind })
		if at < 0 {
			at = len(r.order)
			r.order = append(r.order, t)
		}
		r.fields[r.order[at]] = append(r.fields[r.order[at]], f.Fields...)
	}
	r.generic = distinct(append(r.generic, f.Verbs...))
	return errs
}

// meet returns an error about a plain marker that grants verbs on the resource together with others.
func (r *replaced) meet(m *rolemarkers.RBAC) error {
	has := slices.Contains[[]string]
	groups := slices.Clone(m.Groups)
	for i := range groups {
		if groups[i] == "core" {
			groups[i] = ""
		}
	}
	_, subresource, isSub := strings.Cut(r.resource, "/")
	exact := has(groups, r.group) && has(m.Resources, r.resource)
	covers := (has(groups, r.group) || has(groups, "*")) &&
		(has(m.Resources, r.resource) || has(m.Resources, "*") || isSub && has(m.Resources, "*/"+subresource))
	if !covers {
		return nil
	}
	grants := has(m.Verbs, "*") || slices.ContainsFunc(r.generic, func(verb string) bool { return has(m.Verbs, verb) })
	switch {
	case !grants:
		return nil
	case !exact || has(groups, "*") || has(m.Resources, "*") || isSub && has(m.Resources, "*/"+subresource):
		return &rolemarkers.Fault{Position: m.Position, Message: fmt.Sprintf("marker grants %s on all resources, with %q of group %q among them, whose fields a marker +fieldperm:rbac names: name the resources one by one", strings.Join(m.Verbs, ", "), r.resource, r.group)}
	case has(m.Verbs, "*"):
		return &rolemarkers.Fault{Position: m.Position, Message: fmt.Sprintf("marker grants * on %q of group %q, whose fields a marker +fieldperm:rbac names: name the verbs one by one", r.resource, r.group)}
	}
	return nil
}

// rewrite returns the rules of a role with granular verbs in place of generic ones, in controller-gen's order.
func rewrite(rules []rbacv1.PolicyRule, all []*replaced) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range rules {
		out = append(out, split(&rules[i], all)...)
	}
	key := func(r *rbacv1.PolicyRule) string {
		return strings.Join([]string{strings.Join(r.APIGroups, "&"), strings.Join(r.Resources, "&"), strings.Join(r.ResourceNames, "&"), strings.Join(r.NonResourceURLs, "&")}, " + ")
	}
	slices.SortStableFunc(out, func(a, b rbacv1.PolicyRule) int { return strings.Compare(key(&a), key(&b)) })
	return out
}

// split takes the resources whose verbs are replaced out of a rule, each into a rule of its own.
func split(rule *rbacv1.PolicyRule, all []*replaced) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, group := range rule.APIGroups {
		kept := slices.Clone(rule.Resources)
		for _, r := range all {
			// Behind the marker the verbs of fields are those of updates too. So a rule that grants create without update or patch, such as that of
			// Leases of any name beside a rule for one name, keeps its create.
			if r.group != group || !slices.Contains(rule.Resources, r.resource) || !slices.ContainsFunc(r.generic, func(verb string) bool { return verb != "create" && slices.Contains(rule.Verbs, verb) }) {
				continue
			}
			r.found = true
			kept = slices.DeleteFunc(kept, func(name string) bool { return name == r.resource })
			own := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{r.resource}, ResourceNames: rule.ResourceNames}
			own.Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return slices.Contains(r.generic, verb) })
			own.Verbs = append(own.Verbs, r.granular...)
			if slices.Contains(rule.Verbs, "create") && slices.Contains(r.generic, "create") && !strings.Contains(r.resource, "/") {
				own.Verbs = append(own.Verbs, creation)
			}
			if !slices.Contains(own.Verbs, readVerb) {
				own.Verbs = append(own.Verbs, readVerb)
			}
			slices.Sort(own.Verbs)
			out = append(out, own)
		}
		if len(kept) == 0 {
			continue
		}
		rest := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: kept, ResourceNames: rule.ResourceNames, NonResourceURLs: rule.NonResourceURLs, Verbs: rule.Verbs}
		if at := slices.IndexFunc(out, func(have rbacv1.PolicyRule) bool {
			return slices.Equal(have.Resources, kept) && slices.Equal(have.Verbs, rule.Verbs)
		}); at >= 0 {
			out[at].APIGroups = append(out[at].APIGroups, group)
			continue
		}
		out = append(out, rest)
	}
	if len(rule.APIGroups) == 0 {
		return []rbacv1.PolicyRule{*rule}
	}
	return out
}

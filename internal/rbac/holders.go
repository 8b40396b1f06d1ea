package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/cache"
)

// Holder is a role that grants a verb, with the subjects of its bindings.
type Holder struct {
	// Role is the kind and the name of the role.
	Role string
	// Subjects are kinds and names, sorted.
	Subjects []string
}

// Holders returns the bound roles that grant a verb on a resource or one of its subresources, by name. is reports whether a verb is
// the one in question. A rule with the verb "*" does not count: its holder also holds every verb that could replace this one.
func (l *Live) Holders(group, resource string, is func(verb string) bool) ([]Holder, error) {
	if err := l.Ready(); err != nil {
		return nil, err
	}
	return l.index.holders(group, resource, is), nil
}

func (x *index) holders(group, resource string, is func(verb string) bool) []Holder {
	found := map[string][]string{}
	for _, store := range []cache.Indexer{x.clusterRoleBindings, x.roleBindings} {
		for _, object := range store.List() {
			b := bindingOf(object)
			rules, err := x.rules(&b)
			if err != nil || !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return about(&r, group, resource) && slices.ContainsFunc(r.Verbs, is) }) {
				continue
			}
			role := b.role.Kind + " " + b.role.Name
			if b.role.Kind == "Role" {
				role += " in " + b.namespace
			}
			for i := range b.subjects {
				s := &b.subjects[i]
				name := s.Kind + " " + s.Name
				if s.Kind == rbacv1.ServiceAccountKind {
					name = s.Kind + " " + accountNamespace(s, b.namespace) + "/" + s.Name
				}
				found[role] = append(found[role], name)
			}
		}
	}
	out := make([]Holder, 0, len(found))
	for role, subjects := range found {
		slices.Sort(subjects)
		out = append(out, Holder{role, slices.Compact(subjects)})
	}
	slices.SortFunc(out, func(a, b Holder) int { return strings.Compare(a.Role, b.Role) })
	return out
}

// about reports whether a rule applies to a resource or one of its subresources.
func about(rule *rbacv1.PolicyRule, group, resource string) bool {
	return named(rule.APIGroups, group) && slices.ContainsFunc(rule.Resources, func(r string) bool {
		r, _, _ = strings.Cut(r, "/")
		return r == resource || r == rbacv1.ResourceAll
	})
}

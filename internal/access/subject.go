package access

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Subject is a user, a group or a ServiceAccount that stands in a binding or in a policy.
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	Kind string `json:"kind"`
	// Namespace is that of a ServiceAccount.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the name, of a ServiceAccount with its namespace: shop/deployer.
func (s Subject) String() string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return s.Namespace + "/" + s.Name
	}
	return s.Name
}

func compareSubjects(a, b Subject) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// groupOfAccounts is the beginning of the names of the groups of all ServiceAccounts of a namespace.
const groupOfAccounts = serviceaccount.ServiceAccountGroupPrefix

// User returns a user who is only this subject, with the groups that an API server always gives to such a user. Of a Group it is a member
// without a name. A user is authenticated, except the anonymous one. The ServiceAccounts of a namespace are in the group of all ServiceAccounts.
func (s Subject) User() user.Info {
	switch {
	case s.Kind == rbacv1.ServiceAccountKind:
		return &user.DefaultInfo{
			Name:   serviceaccount.MakeUsername(s.Namespace, s.Name),
			Groups: append(serviceaccount.MakeGroupNames(s.Namespace), user.AllAuthenticated),
		}
	case s.Kind == rbacv1.UserKind && s.Name == user.Anonymous:
		return &user.DefaultInfo{Name: s.Name, Groups: []string{user.AllUnauthenticated}}
	case s.Kind == rbacv1.UserKind:
		return &user.DefaultInfo{Name: s.Name, Groups: []string{user.AllAuthenticated}}
	case s.Name == user.AllAuthenticated || s.Name == user.AllUnauthenticated:
		return &user.DefaultInfo{Groups: []string{s.Name}}
	case strings.HasPrefix(s.Name, groupOfAccounts):
		return &user.DefaultInfo{Groups: []string{s.Name, serviceaccount.AllServiceAccountsGroup, user.AllAuthenticated}}
	}
	return &user.DefaultInfo{Groups: []string{s.Name, user.AllAuthenticated}}
}

// subjectOf returns the subject of a binding in a namespace, "" for a ClusterRoleBinding. A user with the name of a ServiceAccount is the
// ServiceAccount. It reports false for one that nothing matches.
func subjectOf(s *rbacv1.Subject, namespace string) (Subject, bool) {
	out := Subject{Kind: s.Kind, Name: s.Name}
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		out.Namespace = cmp.Or(s.Namespace, namespace)
		return out, out.Namespace != "" && out.Name != ""
	case rbacv1.UserKind:
		if home, name, err := serviceaccount.SplitUsername(s.Name); err == nil {
			return Subject{rbacv1.ServiceAccountKind, home, name}, true
		}
		return out, out.Name != ""
	case rbacv1.GroupKind:
		return out, out.Name != ""
	}
	return Subject{}, false
}

// named are the subjects of bindings and policies, and the namespaces whose RoleBindings name each.
type named struct {
	subjects   []Subject
	namespaces map[Subject][]string
	// verbs are those of rules, without their parameters.
	verbs map[string]bool
}

func namedIn(g *rbac.Grants, policies []rbacv1.Subject) *named {
	out := &named{namespaces: map[Subject][]string{}, verbs: map[string]bool{}}
	known := map[Subject]map[string]bool{}
	add := func(subjects []rbacv1.Subject, namespace string) {
		for i := range subjects {
			s, ok := subjectOf(&subjects[i], namespace)
			if !ok {
				continue
			}
			if known[s] == nil {
				known[s] = map[string]bool{}
				out.subjects = append(out.subjects, s)
			}
			if namespace != "" && !known[s][namespace] {
				known[s][namespace] = true
				out.namespaces[s] = append(out.namespaces[s], namespace)
			}
		}
	}
	grant := func(rules []rbacv1.PolicyRule) {
		for i := range rules {
			for _, verb := range rules[i].Verbs {
				out.verbs[withoutParameter(verb)] = true
			}
		}
	}
	for i := range g.ClusterRoles {
		grant(g.ClusterRoles[i].Rules)
	}
	for i := range g.Roles {
		grant(g.Roles[i].Rules)
	}
	add(policies, "")
	for i := range g.ClusterRoleBindings {
		add(g.ClusterRoleBindings[i].Subjects, "")
	}
	for i := range g.RoleBindings {
		add(g.RoleBindings[i].Subjects, g.RoleBindings[i].Namespace)
	}
	slices.SortFunc(out.subjects, compareSubjects)
	return out
}

// of returns the namespaces with RoleBindings that apply to a user who is the subject.
func (n *named) of(s Subject) []string {
	out := slices.Clone(n.namespaces[s])
	for _, group := range s.User().GetGroups() {
		if g := (Subject{Kind: rbacv1.GroupKind, Name: group}); g != s {
			out = append(out, n.namespaces[g]...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

package rbac

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"
)

// Name names an RBAC object. Namespace is "" for a ClusterRole or a ClusterRoleBinding.
type Name struct{ Kind, Namespace, Name string }

// String returns the kind and the name: Role team/deployer.
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.Namespace + "/" + n.Name
}

// Compare orders by kind, namespace and name.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Kind, other.Kind), cmp.Compare(n.Namespace, other.Namespace), cmp.Compare(n.Name, other.Name))
}

// Match is a rule that a user has by a binding.
type Match struct {
	Binding, Role Name
	Rule          *rbacv1.PolicyRule
}

// Allows reports whether the rule allows the request of the user that it was found for.
func (m *Match) Allows(a authorizer.Attributes) bool {
	asked := ask(a)
	return allows(m.Rule, &asked)
}

// Matches returns the rules that a user has in a namespace, "" for requests that are in none, by bindings that apply to the user: first by
// ClusterRoleBindings, then by RoleBindings of the namespace, each in the order of their names. Bindings to roles that do not exist have no
// rules. Authorize allows a request of the user in the namespace exactly if one of the rules does, except for members of system:masters.
func (a *Authorizer) Matches(u user.Info, namespace string) []Match {
	out := a.index.matches(nil, a.index.clusterRoleBindings, u, "")
	if namespace != "" {
		out = a.index.matches(out, a.index.roleBindings, u, namespace)
	}
	return out
}

func (x *index) matches(out []Match, store cache.Indexer, u user.Info, namespace string) []Match {
	var bound []binding
	add := func(by, name string) {
		objects, err := store.ByIndex(by, subjectKey(namespace, name))
		if err != nil {
			return // The two indexes always exist.
		}
		for _, object := range objects {
			if b := bindingOf(object); b.namespace == namespace && appliesTo(b.subjects, u, namespace) != nil {
				bound = append(bound, b)
			}
		}
	}
	add(byUser, u.GetName())
	for _, group := range u.GetGroups() {
		add(byGroup, group)
	}
	slices.SortFunc(bound, func(a, b binding) int { return cmp.Compare(a.name, b.name) })
	bound = slices.CompactFunc(bound, func(a, b binding) bool { return a.name == b.name })
	for i := range bound {
		b := &bound[i]
		rules, err := x.rules(b)
		if err != nil {
			continue
		}
		role := Name{Kind: b.role.Kind, Name: b.role.Name}
		if role.Kind == "Role" {
			role.Namespace = b.namespace
		}
		for j := range rules {
			out = append(out, Match{Name{b.kind, b.namespace, b.name}, role, &rules[j]})
		}
	}
	return out
}

// Concerns reports whether a rule is about the resource and subresource of a request, whatever its verbs and names.
func Concerns(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	asked := ask(a)
	return concerns(rule, &asked)
}

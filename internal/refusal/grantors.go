package refusal

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// Grantor is a subject that may create or change roles or bindings. RBAC lets it grant only what it holds itself, unless it holds escalate
// (on roles) or bind (on the role that it binds).
type Grantor struct {
	Kind string `json:"kind"`
	// Name has the namespace of a ServiceAccount: shop/deployer.
	Name string `json:"name"`
	// May are what it may do: "roles", "rolebindings", "escalate", "bind".
	May []string `json:"may"`
	// Anything means that it may grant every verb: it may do both, with escalate or bind.
	Anything bool `json:"anything,omitempty"`
}

// Grantors returns the subjects that may change the roles or bindings that a grant takes: those of a namespace, or with "" those of the
// cluster.
func Grantors(grants *rbac.Grants, namespace string) []Grantor {
	roles, bindings := "roles", "rolebindings"
	if namespace == "" {
		roles, bindings = "clusterroles", "clusterrolebindings"
	}
	found := map[holder]map[string]bool{}
	for _, b := range grants.Bound() {
		if b.Namespace != "" && b.Namespace != namespace {
			continue
		}
		may := map[string]bool{}
		for i := range b.Rules {
			rule := &b.Rules[i]
			may[roles] = may[roles] || permits(rule, roles, "create", "update", "patch")
			may[bindings] = may[bindings] || permits(rule, bindings, "create", "update", "patch")
			may["escalate"] = may["escalate"] || permits(rule, roles, "escalate")
			may["bind"] = may["bind"] || permits(rule, roles, "bind") || permits(rule, "clusterroles", "bind")
		}
		for _, s := range b.Subjects {
			key := holder{s.Kind, s.Name}
			if s.Kind == rbacv1.ServiceAccountKind {
				key.name = s.Namespace + "/" + s.Name
			}
			for what, yes := range may {
				if yes {
					if found[key] == nil {
						found[key] = map[string]bool{}
					}
					found[key][what] = true
				}
			}
		}
	}
	var out []Grantor
	for key, may := range found {
		if !may[roles] && !may[bindings] {
			continue
		}
		g := Grantor{Kind: key.kind, Name: key.name, Anything: may[bindings] && (may["bind"] || may[roles] && may["escalate"])}
		for _, what := range []string{roles, bindings, "escalate", "bind"} {
			if may[what] {
				g.May = append(g.May, what)
			}
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b Grantor) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return out
}

// holder identifies a subject.
type holder struct{ kind, name string }

// permits reports whether a rule has one of the verbs on a resource of RBAC, for objects of any name.
func permits(rule *rbacv1.PolicyRule, resource string, verbs ...string) bool {
	has := func(list []string, text string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, text)
	}
	return len(rule.ResourceNames) == 0 && has(rule.APIGroups, rbacv1.GroupName) && has(rule.Resources, resource) &&
		slices.ContainsFunc(verbs, func(verb string) bool { return has(rule.Verbs, verb) })
}

package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// rulesOf finds the role of a binding by a linear search.
func rulesOf(g Grants, b binding) []rbacv1.PolicyRule {
	rules, _ := lookup(g, b)
	return rules
}

func lookup(g Grants, b binding) ([]rbacv1.PolicyRule, bool) {
	if b.role.Kind == "ClusterRole" {
		i := slices.IndexFunc(g.ClusterRoles, func(r rbacv1.ClusterRole) bool { return r.Name == b.role.Name })
		if i < 0 {
			return nil, false
		}
		return g.ClusterRoles[i].Rules, true
	}
	i := slices.IndexFunc(g.Roles, func(r rbacv1.Role) bool { return r.Name == b.role.Name && r.Namespace == b.namespace })
	if i < 0 {
		return nil, false
	}
	return g.Roles[i].Rules, true
}

// possible is every answer that an API server may give, because it looks at bindings in any order.
type possible struct {
	allowed []string // reasons; empty if not allowed
	missing []string // roles in the reason of a NoOpinion, in any order
}

// answers looks at every binding.
func answers(g Grants, a authorizer.AttributesRecord) possible {
	var all possible
	q := ask(a)
	look := func(b binding) {
		subject := appliesTo(b.subjects, a.User, b.namespace)
		if subject == nil {
			return
		}
		rules, ok := lookup(g, b)
		if text := fmt.Sprintf("%s.rbac.authorization.k8s.io %q not found", strings.ToLower(b.role.Kind), b.role.Name); !ok && !slices.Contains(all.missing, text) {
			all.missing = append(all.missing, text)
		}
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return allows(&rule, &q) }) {
			all.allowed = append(all.allowed, allowedBy(&b, subject))
		}
	}
	for i := range g.ClusterRoleBindings {
		look(bindingOf(&g.ClusterRoleBindings[i]))
	}
	for i := range g.RoleBindings {
		// Bindings of a namespace count only if no ClusterRoleBinding allows.
		if g.RoleBindings[i].Namespace == a.Namespace && !slices.ContainsFunc(all.allowed, func(r string) bool { return strings.HasPrefix(r, "RBAC: allowed by ClusterRoleBinding") }) {
			look(bindingOf(&g.RoleBindings[i]))
		}
	}
	slices.Sort(all.missing)
	return all
}

// fault returns why an answer is not one of the possible ones, "" if it is one.
func (p possible) fault(decision authorizer.Decision, reason string, err error) string {
	want := authorizer.DecisionNoOpinion
	if len(p.allowed) > 0 {
		want = authorizer.DecisionAllow
	}
	switch {
	case err != nil:
		return err.Error()
	case decision != want:
	case want == authorizer.DecisionAllow:
		if slices.Contains(p.allowed, reason) {
			return ""
		}
	case slices.Equal(missingIn(reason), p.missing):
		return ""
	}
	return fmt.Sprintf("got %v %q, want one of %q, or missing roles %q", decision, reason, p.allowed, p.missing)
}

// missingIn returns the missing roles in the reason of a NoOpinion.
func missingIn(reason string) []string {
	list, ok := strings.CutPrefix(reason, "RBAC: ")
	if !ok {
		if reason != "" {
			return []string{reason}
		}
		return nil
	}
	if inner, ok := strings.CutPrefix(list, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if parts := strings.Split(inner, " not found, "); ok && len(parts) > 1 {
			for i := range parts[:len(parts)-1] {
				parts[i] += " not found"
			}
			slices.Sort(parts)
			return parts
		}
		return []string{reason}
	}
	return []string{list}
}

func show(a authorizer.AttributesRecord) string {
	return fmt.Sprintf("user %q groups %q verb %q namespace %q group %q resource %q/%q name %q path %q", a.User.GetName(), a.User.GetGroups(), a.Verb, a.Namespace, a.APIGroup, a.Resource, a.Subresource, a.Name, a.Path)
}

// TestIndexAgreesWithAFullScan: searching only the user's own bindings gives the same answer as searching all bindings.
func TestIndexAgreesWithAFullScan(t *testing.T) {
	allowed, missing := 0, 0
	for seed := range uint64(40) {
		s := newSource(seed)
		g := s.grants("x", 25, Grants{})
		a, err := New(g)
		if err != nil {
			t.Fatal(err)
		}
		for range 250 {
			q := s.question(g)
			want := answers(g, q)
			allowed, missing = allowed+min(1, len(want.allowed)), missing+min(1, len(want.missing))
			decision, reason, err := a.index.authorize(q.User, q)
			if fault := want.fault(decision, reason, err); fault != "" {
				t.Fatalf("seed %d: %s: %s", seed, show(q), fault)
			}
			if _, again, _ := a.index.authorize(q.User, q); again != reason {
				t.Fatalf("seed %d: %s: reason %q, then %q", seed, show(q), reason, again)
			}
		}
	}
	if allowed < 2000 || missing < 1000 {
		t.Errorf("of 10000 questions %d are allowed and %d are about a missing role: the test sees too little", allowed, missing)
	}
}

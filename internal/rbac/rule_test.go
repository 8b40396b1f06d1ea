package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// RBAC has only the wildcard "*" and exact verbs, so granular:* is the verb of the root and not a pattern.
func TestGranularVerbsHaveNoWildcard(t *testing.T) {
	for _, c := range []struct {
		holds, asked string
		want         bool
	}{
		{"*", "granular:scale", true},
		{"granular:*", "granular:*", true},
		{"granular:*", "granular:scale", false},
		{"granular:*", "granular", false},
		{"granular", "granular:scale", false},
		{"granular:label", "granular:label(a)", false},
		{"granular:label(*)", "granular:label(a)", false},
	} {
		rule := rbacv1.PolicyRule{Verbs: []string{c.holds}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}
		asked := ask(authorizer.AttributesRecord{Verb: c.asked, APIGroup: "apps", Resource: "deployments", ResourceRequest: true})
		if got := allows(&rule, &asked); got != c.want {
			t.Errorf("%q allows %q: %v, want %v", c.holds, c.asked, got, c.want)
		}
	}
}

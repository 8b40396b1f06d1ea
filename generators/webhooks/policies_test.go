package webhooks

import (
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// TestK5_W2_RulesOfPolicies: a Deny has rules for exactly its resources and the operations of its verbs, and other policies have none.
func TestK5_W2_RulesOfPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		effect    v1alpha1.PolicyEffect
		verbs     []string
		groups    []string
		resources []string
		want      []string
	}{
		"writes":             {v1alpha1.PolicyDeny, []string{"create"}, []string{""}, []string{"pods"}, []string{": pods"}},
		"changes":            {v1alpha1.PolicyDeny, []string{"update", "patch"}, []string{"apps"}, []string{"deployments/scale"}, []string{"apps: deployments/scale"}},
		"deletions":          {v1alpha1.PolicyDeny, []string{"delete"}, []string{"", "apps"}, []string{"pods"}, []string{"deletions of : pods", "deletions of apps: pods"}},
		"collections":        {v1alpha1.PolicyDeny, []string{"deletecollection"}, []string{""}, []string{"pods"}, []string{"deletions of : pods"}},
		"both":               {v1alpha1.PolicyDeny, []string{"create", "delete", "deletecollection"}, []string{""}, []string{"pods"}, []string{": pods", "deletions of : pods"}},
		"everything":         {v1alpha1.PolicyDeny, []string{"delete"}, []string{"*"}, []string{"*"}, []string{"deletions of *: */*"}},
		"creating anything":  {v1alpha1.PolicyDeny, []string{"create"}, []string{"*"}, []string{"*"}, []string{"*: */*", "connections of : pods/attach", "connections of : pods/exec", "connections of : pods/portforward"}},
		"changing anything":  {v1alpha1.PolicyDeny, []string{"update", "patch"}, []string{"*"}, []string{"*"}, []string{"*: */*"}},
		"creating in apps":   {v1alpha1.PolicyDeny, []string{"create"}, []string{"apps"}, []string{"*"}, []string{"apps: */*"}},
		"a connection":       {v1alpha1.PolicyDeny, []string{"create"}, []string{""}, []string{"pods/exec"}, []string{"connections of : pods/exec"}},
		"by its name alone":  {v1alpha1.PolicyDeny, []string{"create"}, []string{""}, []string{"*/attach"}, []string{": */attach", "connections of : pods/attach"}},
		"of another group":   {v1alpha1.PolicyDeny, []string{"create"}, []string{"example.com"}, []string{"pods/exec"}, []string{"example.com: pods/exec"}},
		"not its deletion":   {v1alpha1.PolicyDeny, []string{"delete", "update", "patch"}, []string{""}, []string{"pods/exec"}, nil},
		"a proxy":            {v1alpha1.PolicyDeny, []string{"create"}, []string{""}, []string{"pods/proxy"}, []string{": pods/proxy"}},
		"granular verbs":     {v1alpha1.PolicyDeny, []string{"granular", "granular:scale"}, []string{""}, []string{"pods"}, nil},
		"an unknown effect":  {"deny", []string{"delete"}, []string{""}, []string{"pods"}, []string{"deletions of : pods"}},
		"an Allow":           {v1alpha1.PolicyAllow, []string{"create", "delete"}, []string{""}, []string{"pods"}, nil},
		"a NoOpinion":        {v1alpha1.PolicyNoOpinion, []string{"create", "delete"}, []string{""}, []string{"pods"}, nil},
		"half of a verb":     {v1alpha1.PolicyDeny, []string{"patch"}, []string{""}, []string{"pods"}, []string{": pods"}},
		"no verb of a write": {v1alpha1.PolicyDeny, []string{"get"}, []string{""}, []string{"pods"}, nil},
	} {
		spec := &v1alpha1.ConditionalPolicySpec{Effect: c.effect, Verbs: c.verbs, Resources: []v1alpha1.PolicyResource{{APIGroups: c.groups, Resources: c.resources}}}
		if got := ruleLines(Denied(spec)); !slices.Equal(got, c.want) {
			t.Errorf("%s: rules are %q, want %q", name, got, c.want)
		}
	}
}

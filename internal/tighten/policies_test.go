package tighten

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// policyOf is a policy about a subject, "KIND:NAME".
func policyOf(effect v1alpha1.PolicyEffect, subject, groupResource string, verbs ...string) v1alpha1.ConditionalPolicy {
	out := v1alpha1.ConditionalPolicy{Spec: v1alpha1.ConditionalPolicySpec{Effect: effect, Verbs: verbs}}
	out.Name = "p"
	kind, name, _ := strings.Cut(subject, ":")
	one := v1alpha1.Subject{Kind: kind, Name: name}
	if kind == "ServiceAccount" {
		one.Namespace, one.Name, _ = strings.Cut(name, ":")
	}
	out.Spec.Subjects = []v1alpha1.Subject{one}
	group, resource, _ := strings.Cut(groupResource, "/")
	out.Spec.Resources = []v1alpha1.PolicyResource{{APIGroups: []string{group}, Resources: []string{resource}}}
	return out
}

// TestK5_ATightenedSubjectIsToldOfPolicies: those about it where update and patch are taken away. A Deny of a verb of the proposal is a loss: a
// holder of update does not need the verb.
func TestK5_ATightenedSubjectIsToldOfPolicies(t *testing.T) {
	const me, others = "ServiceAccount:ops:operator", "User:jane"
	allow, deny, none := v1alpha1.PolicyAllow, v1alpha1.PolicyDeny, v1alpha1.PolicyNoOpinion
	for name, c := range map[string]struct {
		policy        v1alpha1.ConditionalPolicy
		decides, lost string // "" for nothing
	}{
		"allow of update":             {policyOf(allow, me, "apps/deployments", "update", "patch", "create"), `ConditionalPolicy "p", with Allow on update, patch of deployments.apps: writes that it allowed are in the evidence; the subject may go on writing under its condition`, ""},
		"allow of a verb":             {policyOf(allow, me, "apps/*", "granular", "granular:scale"), `with Allow on granular, granular:scale of deployments.apps: writes that it allowed are in the evidence; an observation counts its verbs as held`, ""},
		"allow of create":             {policyOf(allow, me, "apps/deployments", "create", "delete"), "", ""},
		"no opinion":                  {policyOf(none, me, "*/*", "granular:scale"), `with NoOpinion on granular:scale of deployments.apps: it takes away`, ""},
		"deny of update":              {policyOf(deny, me, "apps/deployments", "update", "patch"), `with Deny on update, patch of deployments.apps: it denies before`, ""},
		"deny of a verb":              {policyOf(deny, me, "apps/deployments", "granular:scale", "granular:image"), "", `ConditionalPolicy "p" may deny granular:scale on deployments.apps, which update and patch do not need`},
		"deny of both":                {policyOf(deny, me, "*/deployments", "update", "patch", "granular:scale"), `with Deny on update, patch of deployments.apps:`, "may deny granular:scale on deployments.apps"},
		"deny of the marker":          {policyOf(deny, me, "apps/deployments", "granular"), "", "may deny granular on deployments.apps"},
		"deny of another verb":        {policyOf(deny, me, "apps/deployments", "granular:paused"), "", ""},
		"an effect that is not known": {policyOf("Perhaps", me, "apps/deployments", "granular:scale"), "", "may deny granular:scale"},
		"its group":                   {policyOf(deny, "Group:system:serviceaccounts:ops", "apps/deployments", "granular:scale"), "", "may deny granular:scale"},
		"a group of the evidence":     {policyOf(deny, "Group:system:authenticated", "apps/deployments", "granular:scale"), "", "may deny granular:scale"},
		"others":                      {policyOf(deny, others, "apps/deployments", "granular:scale", "update", "patch"), "", ""},
		"another resource":            {policyOf(deny, me, "apps/deployments/scale", "granular:scale"), "", ""},
		"another group of resources":  {policyOf(deny, me, "extensions/deployments", "granular:scale"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := propose(t, operator, grants(t, bound(deployments, "")), webLog, func(o *Options) { o.Policies = []v1alpha1.ConditionalPolicy{c.policy} })
			for of, text := range map[string][2]string{"decides": {strings.Join(p.Policies, "; "), c.decides}, "lost": {strings.Join(p.Losses, "; "), c.lost}} {
				if got, want := text[0], text[1]; (got == "") != (want == "") || !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q", of, got, want)
				}
			}
		})
	}
}

// TestK5_APolicyWhereNothingIsTakenIsNotListed: the subject keeps update there.
func TestK5_APolicyWhereNothingIsTakenIsNotListed(t *testing.T) {
	policy := policyOf(v1alpha1.PolicyDeny, "ServiceAccount:ops:operator", "apps/deployments", "granular", "update", "patch")
	p := propose(t, operator, grants(t, bound(deployments, "")), webLog, func(o *Options) {
		o.Policies, o.Keep = []v1alpha1.ConditionalPolicy{policy}, []Resource{{"apps", "deployments"}}
	})
	if len(p.Policies)+len(p.Losses) > 0 {
		t.Errorf("%q, %q", p.Policies, p.Losses)
	}
}

// TestCommonResources: each of the two may have "*" in it.
func TestCommonResources(t *testing.T) {
	for _, c := range []struct {
		a, b, want Resource // without a name for nothing
	}{
		{Resource{"apps", "deployments"}, Resource{"apps", "deployments"}, Resource{"apps", "deployments"}},
		{Resource{"*", "deployments"}, Resource{"apps", "*"}, Resource{"apps", "deployments"}},
		{Resource{"*", "*"}, Resource{"*", "*/scale"}, Resource{"*", "*/scale"}},
		{Resource{"apps", "*/scale"}, Resource{"*", "deployments/scale"}, Resource{"apps", "deployments/scale"}},
		{Resource{"apps", "*/scale"}, Resource{"apps", "deployments/status"}, Resource{}},
		{Resource{"apps", "*/scale"}, Resource{"apps", "deployments"}, Resource{}},
		{Resource{"", "pods"}, Resource{"apps", "pods"}, Resource{}},
		{Resource{"", "pods"}, Resource{"*", "*"}, Resource{"", "pods"}},
	} {
		for _, pair := range [][2]Resource{{c.a, c.b}, {c.b, c.a}} {
			if got, ok := common(pair[0], pair[1]); got != c.want || ok != (c.want.Name != "") {
				t.Errorf("%s and %s: %s, %t, want %s", pair[0], pair[1], got, ok, c.want)
			}
		}
	}
}

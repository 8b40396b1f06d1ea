//go:build integration

package plugin

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// policiesOfTheOperator allow and deny updates of Deployments under conditions.
const policiesOfTheOperator = `
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: bounds}, spec: {subjects: [{kind: ServiceAccount, namespace: ops, name: operator}], verbs: ["granular:scale"],
  resources: [{apiGroups: [apps], resources: [deployments]}], effect: Deny, condition: 'object.spec.replicas > 10'}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: night}, spec: {subjects: [{kind: Group, name: 'system:serviceaccounts:ops'}], verbs: [update, patch],
  resources: [{apiGroups: ['*'], resources: ['*']}], effect: Allow, condition: 'object.metadata.name == "night"'}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: others}, spec: {subjects: [{kind: User, name: jane}], verbs: [update, patch],
  resources: [{apiGroups: ['*'], resources: ['*']}], effect: Deny, condition: 'true'}}
`

// TestK5_Cluster_TightenTellsOfPolicies: a loss by a Deny is a fault until it is accepted.
func TestK5_Cluster_TightenTellsOfPolicies(t *testing.T) {
	p := newTightenPlane(t)
	p.kubectl("", "delete", "rolebinding", "edit", "-n", "shop")
	p.kubectl(policiesOfTheOperator, "create", "-f", "-")
	s, err := tighten.ParseSubject(operator)
	must(t, err)
	p.kubectl(observationOf("first", s), "create", "-f", "-")
	p.observation("first", row(operator, "apps", "deployments", "shop", "web", "granular:scale"))
	const loss, allow = `ConditionalPolicy "bounds" may deny granular:scale on deployments.apps`, `ConditionalPolicy "night", with Allow on update, patch of `
	before := p.objects()
	for _, c := range []struct {
		args  []string
		fails bool
		wants []string
	}{
		{nil, true, []string{loss, allow}},
		{[]string{"--allow-loss"}, false, []string{loss, allow}},
	} {
		out, err := p.run(append([]string{operator}, c.args...)...)
		text := out
		if err != nil {
			text += err.Error()
		}
		for _, want := range c.wants {
			if (err != nil) != c.fails || !strings.Contains(text, want) || strings.Contains(text, `"others"`) {
				t.Errorf("%q: %v, want %q", c.args, err, want)
			}
		}
	}
	if p.objects() != before {
		t.Error("an object was changed")
	}
}

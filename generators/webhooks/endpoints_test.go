package webhooks

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Each endpoint that writes a guarded field is probed, and no other; the floor is not.
func TestA6_W2_EndpointsOfABarrier(t *testing.T) {
	names := func(list []endpoint.Endpoint) string {
		var out []string
		for i := range list {
			out = append(out, strings.TrimSuffix(list[i].Name()+"."+list[i].Group, "."))
		}
		return strings.Join(out, " ")
	}
	for name, c := range map[string]struct{ spec, want string }{
		"a field of the object":   {`{uncoveredPermissions: ['granular:data'], resources: [{apiGroups: [''], resources: [configmaps]}]}`, "configmaps"},
		"scale":                   {`{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments]}]}`, "deployments.apps deployments/scale.apps"},
		"the fields of a Binding": {`{uncoveredPermissions: ['granular:nodeAssignment'], resources: [{apiGroups: [''], resources: [pods]}]}`, "bindings pods pods/binding pods/ephemeralcontainers pods/resize"},
		"one subresource":         {`{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments/scale]}]}`, "deployments/scale.apps"},
		"the floor":               {`{uncoveredPermissions: ['granular:specification'], resources: [{apiGroups: [coordination.k8s.io], resources: [leases]}]}`, ""},
	} {
		s, sets := compile(t, uncoveredSet(c.spec))
		if got := names(SetEndpoints(s, &sets[0], nil)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s, _ := compile(t, permissionSchema("apps", "Deployment", ".spec.replicas", "example.com/size", "excluded: true"))
	for kind, want := range map[string]string{"Deployment": "deployments.apps deployments/scale.apps", "StatefulSet": ""} {
		if got := names(KindEndpoints(s, runtimeschema.GroupKind{Group: "apps", Kind: kind}, nil)); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	// Events are one object under two names.
	s, sets := compile(t, uncoveredSet(`{uncoveredPermissions: ['granular:label(a)'], resources: [{apiGroups: [''], resources: [events]}]}`))
	if got := names(SetEndpoints(s, &sets[0], nil)); got != "events events.events.k8s.io" {
		t.Errorf("events: %q", got)
	}
	s, sets = compile(t, uncoveredSet(`{uncoveredPermissions: ['granular:label(a)']}`))
	if n := len(SetEndpoints(s, &sets[0], nil)); n < 60 {
		t.Errorf("a set for everything is probed at %d endpoints", n)
	}
}

// TestA6_W2_EndpointsOfRules: each resource of a policy has an endpoint to probe for the operations of its rules. A rule for all has one.
func TestA6_W2_EndpointsOfRules(t *testing.T) {
	s, _ := compile(t)
	rule := func(of Operations, group string, names ...string) []Rule {
		return of.On([]v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: names}})
	}
	for name, c := range map[string]struct {
		rules []Rule
		want  []string
	}{
		"writes":             {rule(Writes, "apps", "deployments", "deployments/scale"), []string{"writes deployments.apps", "writes deployments/scale.apps"}},
		"deletions":          {rule(Deletions, "", "pods", "pods/status"), []string{"deletions pods"}},
		"connections":        {rule(Connects, "", "pods/attach", "pods/exec"), []string{"connections pods/attach", "connections pods/exec"}},
		"what is not stored": {rule(Writes, "", "pods/eviction", "serviceaccounts/token"), nil},
		"the floor":          {append(rule(Deletions, "coordination.k8s.io", "leases"), rule(Writes, "fieldperm.dev", "conditionalpolicies/status")...), nil},
		"everything":         {append(rule(Writes, "*", "*/*"), rule(Deletions, "*", "*/*")...), []string{"deletions configmaps", "writes configmaps"}},
		"the core group":     {rule(Deletions, "", "*/*"), []string{"deletions configmaps"}},
		"one in any group":   {rule(Deletions, "*", "statefulsets"), []string{"deletions statefulsets.apps"}},
		"a custom resource":  {rule(Deletions, "example.com", "widgets"), []string{"deletions widgets.example.com"}},
	} {
		var got []string
		for of, list := range RuleEndpoints(s, c.rules, nil) {
			for i := range list {
				got = append(got, strings.TrimSuffix(string(of)+" "+list[i].Name()+"."+list[i].Group, "."))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if list := RuleEndpoints(s, rule(Deletions, "apps", "*"), nil)[Deletions]; len(list) < 4 {
		t.Errorf("a group: %v", list)
	}
}

package webhooks

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

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

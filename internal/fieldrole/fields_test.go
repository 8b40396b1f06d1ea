package fieldrole

import (
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/schematest"
)

func TestFields_Goldens(t *testing.T) {
	for name, c := range map[string]struct {
		kind    string
		fields  []string
		options Options
		role    Role
	}{
		"replicas.yaml":      {kind: "apps/v1/Deployment", fields: []string{".spec.replicas", `.metadata.labels["example.com/tier"]`}, role: Role{Namespace: "shop"}},
		"scale.yaml":         {kind: "Deployment", fields: []string{"spec.replicas"}, options: Options{Subresources: []string{"scale"}}, role: Role{Name: "scaler", Cluster: true, Verbs: []string{"get"}}},
		"only_scale.yaml":    {kind: "deployments.apps", fields: []string{".spec.replicas"}, options: Options{Subresources: []string{"scale"}, Only: true}},
		"status.yaml":        {kind: "apps/v1/Deployment", fields: []string{".spec.paused", `.status.conditions[type="Ready"]`}},
		"container.yaml":     {kind: "apps/v1/Deployment", fields: []string{`.spec.template.spec.containers[name="web"].image`}},
		"any_container.yaml": {kind: "apps/v1/Deployment", fields: []string{`.spec.template.spec.containers.image`}},
		"key.yaml":           {kind: "apps/v1/Deployment", fields: []string{`.spec.template.spec.containers[name="web"].name`}},
		"whole.yaml":         {kind: "v1/ConfigMap", fields: []string{".metadata.ownerReferences[*].blockOwnerDeletion"}},
		"prefix.yaml":        {kind: "v1/Namespace", fields: []string{`.metadata.labels["pod-security.kubernetes.io/*"]`, `.metadata.labels["example.com/*"]`}},
		"names.yaml":         {kind: "v1/ConfigMap", fields: []string{`.data["a"]`}, role: Role{Namespace: "shop", ResourceNames: []string{"two", "one"}, Create: true}},
		"below.yaml":         {kind: "apps/v1/Deployment", fields: []string{".spec", ".spec.replicas"}},
		"barriers.yaml":      {kind: "example.com/v1/Widget", fields: []string{".spec.safe", ".spec.safe.danger", ".spec.limit"}},
		"above_barrier.yaml": {kind: "example.com/v1/Widget", fields: []string{".spec.safe"}},
		"inner.yaml":         {kind: "widgets", fields: []string{".spec.safe.danger.inner"}},
		"own_scale.yaml":     {kind: "Widget", fields: []string{".spec.size", `.spec.tags["red"]`}, options: Options{Subresources: []string{"scale"}}},
		"wildcard.yaml":      {kind: "Widget", fields: []string{".settings.color"}, options: Options{Wildcard: true}},
		"inside.yaml":        {kind: "Plain", fields: []string{".status.size", ".spec.size"}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := target(t, c.kind).Fields(t.Context(), c.fields, c.options)
			if err != nil {
				t.Fatal(err)
			}
			text, err := c.role.Manifest(rules)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, text)
		})
	}
}

func TestFields_Errors(t *testing.T) {
	for _, c := range []struct {
		kind, field string
		options     Options
		want        string
	}{
		{kind: "apps/v1/Deployment", field: ".spec.replica", want: `".spec" has no field "replica": use "replicas"`},
		{kind: "apps/v1/Deployment", field: ".spec.replica", options: Options{Subresources: []string{"scale"}, Only: true}, want: `use "replicas"`},
		{kind: "apps/v1/Deployment", field: ".metadata.uid", want: "is written by the API server, whatever the user sends: leave it out"},
		{kind: "apps/v1/Deployment", field: ".metadata.name", want: "identifies the object and needs no verb: leave it out"},
		{kind: "apps/v1/Deployment", field: ".metadata.managedFields", want: "takes the verb of that field: name that field"},
		{kind: "apps/v1/Deployment", field: ".spec.paused", options: Options{Subresources: []string{"scale"}}, want: "does not write it: it is written through deployments"},
		{kind: "apps/v1/Deployment", field: ".spec.paused", options: Options{Subresources: []string{"dance"}}, want: `subresource "dance" of deployments: is not known to write fields: use scale or status`},
		{kind: "v1/Pod", field: ".spec.nodeName", options: Options{Subresources: []string{"binding"}}, want: "granular verbs do not let writes of it in: grant create"},
		{kind: "ValidatingWebhookConfiguration", field: ".webhooks", want: "granular verbs do not let writes of it in: grant create"},
		{kind: "v1/Secret", field: `.data["a/*"]`, want: "takes whole keys, and no prefix of them: name each key"},
		{kind: "Widget", field: ".settings.color", want: "only granular:* covers it, and with it every field that no barrier guards: give the field a verb"},
		{kind: "Plain", field: ".status.size", options: Options{Subresources: []string{"status"}}, want: `subresource "status" of plains: is not known to write fields: leave it out`},
	} {
		_, err := target(t, c.kind).Fields(t.Context(), []string{c.field}, c.options)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.kind, c.field, err, c.want)
		}
	}
	if _, err := target(t, "Pod").Fields(t.Context(), nil, Options{}); err == nil || !strings.Contains(err.Error(), "field is missing") {
		t.Errorf("no field: %v", err)
	}
}

func TestFind_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"apps/v1/Deploymnt":                      "is not known: use apps/v1/Deployment",
		"apps/v2/Deployment":                     `has no version "v2": use v1`,
		"a/b/c/d":                                "is not of the form GROUP/VERSION/KIND",
		"Event":                                  `is a kind of the groups "" and "events.k8s.io": write GROUP/VERSION/KIND`,
		"autoscaling/v1/HorizontalPodAutoscaler": "may change fields that it does not show",
		"Deployment.example.com":                 "is not known",
		"autoscaling/v1/Scale":                   "is not known",
	} {
		if got, err := kinds(t).Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", text, got, err, want)
		}
	}
	for _, c := range []struct{ group, resource, want string }{
		{"", "deployments", `use group "apps"`},
		{"apps", "deployment", `use "deployments"`},
		{"apps", "xyz", "give its CustomResourceDefinition with --crd"},
	} {
		if _, err := kinds(t).Resource(c.group, c.resource, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got := target(t, "HorizontalPodAutoscaler"); got.Version != "v2" {
		t.Errorf("version %q of a kind with a lossy version", got.Version)
	}
}

// TestC2_NoBarrierIsPassedThatWasNotAskedFor: a role for a field has no verb of a barrier below it.
func TestC2_NoBarrierIsPassedThatWasNotAskedFor(t *testing.T) {
	rules, err := target(t, "Widget").Fields(t.Context(), []string{".spec", ".spec.safe"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(rules[0].Verbs, "granular:example.com/danger") || len(rules[0].Fields[0].Without) == 0 {
		t.Errorf("verbs %q, fields %+v", rules[0].Verbs, rules[0].Fields)
	}
}

// TestC2_EveryBarrierBelowAFieldIsInTheComments: an administrator takes what the comments except for all that is excepted.
func TestC2_EveryBarrierBelowAFieldIsInTheComments(t *testing.T) {
	const barriers = `
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: pods}
spec: {fragment: podTemplate, permissions: [
  {path: .spec.hostNetwork, verb: example.com/host, excluded: true}, {path: '.metadata.labels["example.com/"]', verb: example.com/label, excluded: true},
  {path: '.spec.containers[*].image', verb: example.com/image, excluded: true}, {path: '.spec.initContainers[*].image', verb: example.com/image, excluded: true}]}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: templates}, spec: {group: apps, kind: Deployment, permissions: [
  {path: .spec.template.spec.hostPID, verb: example.com/pid, excluded: true}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: volumes}, spec: {uncoveredPermissions: ['granular:volumes'], resources: [{apiGroups: [apps], resources: [deployments]}]}}
`
	deployment, err := New(schematest.Traced(t, widgets+gadgets, barriers), schematest.Documents(t, widgets+gadgets, barriers)).Find("apps/v1/Deployment")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := deployment.Fields(t.Context(), []string{".spec.template"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	without := strings.Join(rules[0].Fields[0].Without, "\n")
	const below = "below, at .spec.template."
	for _, want := range []string{
		below + "spec.hostNetwork: needs granular:example.com/host", below + `metadata.labels["example.com/"]: needs granular:example.com/label`,
		below + "spec.containers[*].image, .spec.template.spec.initContainers[*].image: needs granular:example.com/image",
		below + "spec.hostPID: needs granular:example.com/pid", below + "spec.volumes: needs granular:volumes",
	} {
		if !strings.Contains(without, want) {
			t.Errorf("%q is not in the comments:\n%s", want, without)
		}
	}
}

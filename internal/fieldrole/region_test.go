package fieldrole

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// gadgets has a map whose keys give verbs no parameter, and lists of each sort.
const gadgets = `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations:
    fieldperm.dev/permission-verbs: |
      {"v1": [{"path": ".spec.m[*]", "verb": "example.com/amount"}, {"path": ".spec.named[*].x", "verb": "example.com/x"},
              {"path": ".spec.ports[*].open", "verb": "example.com/open", "parameterizedBy": "port"},
              {"path": ".spec.ports[*].number", "parameterSource": "port"},
              {"path": ".spec.flags", "verb": "example.com/flags"}, {"path": ".spec.steps", "verb": "example.com/steps"}]}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {
        m: {type: object, additionalProperties: {type: string}},
        named: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}},
        steps: {type: array, items: {type: string}},
        flags: {type: array, x-kubernetes-list-type: set, items: {type: string}},
        ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [number, protocol], items: {type: object, required: [number, protocol], properties: {
          number: {type: integer}, protocol: {type: string}, open: {type: boolean}}}}}}}}}}
`

// TestC1_CommentsSayAllThatTheVerbsCover: what is more than the field that was asked for is said, and nothing that the verbs do not cover.
func TestC1_CommentsSayAllThatTheVerbsCover(t *testing.T) {
	const template = ".spec.template.spec."
	for _, c := range []struct {
		kind, field string
		// also are the texts about what the verbs cover besides.
		also []string
	}{
		{"example.com/v1/Gadget", `.spec.m["a.com/*"]`, []string{"every entry of .spec.m"}},
		{"example.com/v1/Gadget", `.spec.m["a.com/x"]`, []string{"every entry of .spec.m"}},
		{"example.com/v1/Gadget", `.spec.m[*]`, nil},
		{"example.com/v1/Gadget", `.spec.m`, []string{"all of .spec"}},
		{"example.com/v1/Gadget", `.spec.named["a"].x`, []string{".spec.named[*].x"}},
		{"example.com/v1/Gadget", `.spec.flags[="a"]`, []string{"all of .spec.flags"}},
		{"example.com/v1/Gadget", `.spec.ports[number=80,protocol="TCP"].open`, []string{".spec.ports[number=80].open"}},
		{"example.com/v1/Gadget", `.spec.ports[number=80].open`, nil},
		{"v1/ConfigMap", `.metadata.labels["/*"]`, []string{"every entry of .metadata.labels"}},
		{"v1/ConfigMap", `.metadata.labels["a.com/*"]`, []string{`.metadata.labels["a.com"]`}},
		{"v1/ConfigMap", `.metadata.labels["a.com/x"]`, []string{"every key of .metadata.labels with the prefix a.com/", `.metadata.labels["a.com"]`}},
		{"v1/ConfigMap", `.metadata.labels.tier`, []string{"every key of .metadata.labels with the prefix tier/"}},
		{"v1/ConfigMap", `.metadata.finalizers[="a.b/c"]`, []string{"every value of .metadata.finalizers with the prefix a.b/", `.metadata.finalizers[="a.b"]`}},
		{"v1/ConfigMap", `.metadata.annotations["applyset.kubernetes.io/x"]`, []string{"every key of .metadata.annotations with the prefix applyset.kubernetes.io/", "every key of .metadata.labels with the prefix applyset.kubernetes.io/"}},
		{"v1/ConfigMap", `.data["x"]`, []string{".binaryData.x"}},
		{"apps/v1/Deployment", template + `containers[name="a"].resources`, []string{template + `ephemeralContainers[name="a"].resources`, template + `initContainers[name="a"].resources`}},
		{"apps/v1/Deployment", template + `containers[*].resources`, []string{template + "ephemeralContainers[*].resources", template + "initContainers[*].resources", template + "resources"}},
	} {
		rules, err := target(t, c.kind).Fields(t.Context(), []string{c.field}, Options{})
		if err != nil {
			t.Errorf("%s %s: %v", c.kind, c.field, err)
			continue
		}
		var got []string
		for _, s := range rules[0].Also {
			got = append(got, s.Text)
		}
		slices.Sort(got)
		slices.Sort(c.also)
		if !slices.Equal(got, c.also) {
			t.Errorf("%s %s: the verbs %q also cover %q, want %q", c.kind, c.field, rules[0].Verbs, got, c.also)
		}
	}
}

// TestFields_ItemsByWhatTellsThemApart: no verb is for an item at an index, or with the value of a field that is no key.
func TestFields_ItemsByWhatTellsThemApart(t *testing.T) {
	for _, c := range []struct{ kind, field, want string }{
		{"apps/v1/Deployment", `.spec.template.spec.containers[image="x"].image`, `[image="x"] names no key of the items of ".spec.template.spec.containers": write [name="…"], or [*] for all`},
		{"apps/v1/Deployment", `.spec.template.spec.containers[="x"].image`, `names no key of the items`},
		{"apps/v1/Deployment", `.spec.template.spec.containers[0].image`, `[0] is an index, and an index tells no items of ".spec.template.spec.containers" apart: write [name="…"], or [*] for all`},
		{"apps/v1/Deployment", `.spec.template.spec.volumes[0]`, `[0] is an index`},
		{"apps/v1/Deployment", `.spec.template.spec.containers[name="a"].args[0]`, `[0] is an item of ".spec.template.spec.containers[*].args", which changes as a whole`},
		{"v1/ConfigMap", `.metadata.finalizers[0]`, `write [="…"] for one item, or [*] for all`},
		{"v1/ConfigMap", `.data[a]`, `[a] is in ".data", which is a map: write ["a"] for one key`},
		{"v1/Pod", `.spec.containers[0].resources`, `[0] is an index`},
		{"example.com/v1/Gadget", `.spec.steps[0]`, `which changes as a whole: name .spec.steps`},
		{"example.com/v1/Gadget", `.spec.ports[open=true].open`, `write [number="…",protocol="…"], or [*] for all`},
		{"example.com/v1/Gadget", `.spec.named["a/*"].x`, `a prefix of keys is not the last step`},
	} {
		if _, err := target(t, c.kind).Fields(t.Context(), []string{c.field}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.field, err, c.want)
		}
	}
}

// TestFields_SubresourcesWriteItemsByTheirKeys: pods/resize writes the resources of a container, however the path names it.
func TestFields_SubresourcesWriteItemsByTheirKeys(t *testing.T) {
	for field, verb := range map[string]string{
		`.spec.containers[name="web"].resources`:             "granular:resources(web)",
		`.spec.containers[*].resources`:                      "granular:resources",
		`spec.containers.resources`:                          "granular:resources",
		`.spec.containers[*].resources.requests["cpu"]`:      "granular:resources",
		`.spec.containers[name="web"].resources.limits["a"]`: "granular:resources(web)",
	} {
		rules, err := target(t, "v1/Pod").Fields(t.Context(), []string{field}, Options{Subresources: []string{"resize"}, Only: true})
		if err != nil || len(rules) != 1 || rules[0].Subresource != "resize" || !slices.Equal(rules[0].Verbs, []string{"granular", verb}) {
			t.Errorf("%s: %+v, %v", field, rules, err)
		}
		rules, err = target(t, "v1/Pod").Fields(t.Context(), []string{field}, Options{})
		if err != nil || !slices.ContainsFunc(rules[0].Notes, func(note string) bool { return strings.Contains(note, "add --subresource resize") }) {
			t.Errorf("%s: no note about pods/resize: %+v, %v", field, rules, err)
		}
	}
}

// TestManifest_IsYAMLWithAnyKey: a key of a map may have characters that YAML does not take.
func TestManifest_IsYAMLWithAnyKey(t *testing.T) {
	rules, err := target(t, "v1/ConfigMap").Fields(t.Context(), []string{".data[\"a\x1b[2K\x07\u202e\"]"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := (&Role{}).Manifest(rules)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.UnmarshalStrict(text, &out); err != nil || strings.ContainsAny(string(text), "\x1b\x07\u202e") {
		t.Errorf("%v in\n%q", err, text)
	}
}

package fieldtree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// widgets is a custom resource with barriers of every sort.
var widgets = schematest.Definition{
	Kind: "Widget", Subresources: "{status: {}}",
	Verbs: `[
		{"path": ".spec", "verb": "specification"},
		{"path": ".spec.parts[*].name", "parameterSource": "partName"},
		{"path": ".spec.parts[*].weight", "verb": "example.com/weight", "parameterizedBy": "partName"},
		{"path": ".spec.size", "verb": "example.com/size", "excludedWhen": "self > 9"},
		{"path": ".spec.colour", "verb": "example.com/colour", "excluded": true}
	]`,
	Properties: `
		spec: {type: object, properties: {
			size: {type: integer},
			colour: {type: string},
			free: {type: object, x-kubernetes-preserve-unknown-fields: true},
			parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer}}}}}},
		status: {type: object, properties: {phase: {type: string}}}`,
}.String()

// set returns an UncoveredPermissionSet on widgets.
func set(name, verb, resource, more string) string {
	return schematest.UncoveredSet(name, fmt.Sprintf("{uncoveredPermissions: [%q], resources: [{apiGroups: [example.com], resources: [%s]}]%s}", verb, resource, more))
}

func of(t *testing.T, s *schema.Schema, group, version, kind, resource, subresource string) *Kind {
	t.Helper()
	k, err := Of(s, runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind}, schema.ResourceRef{Group: group, Version: version, Resource: resource, Subresource: subresource})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// chainOf returns the chain of a path as text: verbs that never count in brackets, those that may not with a question mark.
func chainOf(t *testing.T, k *Kind, path string) string {
	t.Helper()
	p, err := k.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	var chains []string
	for _, chain := range p.Chains() {
		var words []string
		for i := range chain {
			word := strings.TrimPrefix(chain[i].Verb, "granular:")
			if word == "" {
				word = "generic"
			}
			if !chain[i].Counts() {
				word = "[" + word + "]"
			} else if len(chain[i].Lost) > 0 {
				word += "?"
			}
			words = append(words, word)
		}
		chains = append(chains, strings.Join(words, " "))
	}
	return strings.Join(chains, " | ")
}

func TestChains(t *testing.T) {
	s := schematest.Traced(t, widgets, set("a", "granular:example.com/weight(engine)", "widgets", ""), set("b", "granular:*", "widgets/status", ""),
		set("c", "granular:specification", "widgets", ", validationActions: [Warn]"))
	widget := of(t, s, "example.com", "v1", "Widget", "widgets", "")
	for path, want := range map[string]string{
		"":                      "generic *",
		".spec":                 "generic * specification",
		".spec.free":            "generic * specification",
		".spec.size":            "generic? *? specification? example.com/size",
		".spec.colour":          "[generic] [*] [specification] example.com/colour",
		".spec.parts[*].name":   "generic * specification",
		".spec.parts[*].weight": "generic? *? specification? example.com/weight? example.com/weight(partName)",
		".status":               "[generic] * status",
		".status.phase":         "[generic] * status",
		`.metadata.annotations["applyset.kubernetes.io/x"]`: "generic * metadata annotations applySet",
		`.spec.parts[name="engine"].weight`:                 "[generic] [*] [specification] [example.com/weight] example.com/weight(engine)",
		`spec.parts[name="wheel"].weight`:                   "generic * specification example.com/weight example.com/weight(wheel)",
		`.metadata.labels["a.b/c"]`:                         "generic * metadata labels label label(a.b)",
		`.metadata.finalizers[="x.y/z"]`:                    "generic * metadata finalizers finalizer finalizer(x.y)",
	} {
		if got := chainOf(t, widget, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	deployment := of(t, s, "apps", "v1", "Deployment", "deployments", "")
	if got, want := chainOf(t, deployment, "spec.template.spec.containers.image"), "generic * specification template containers container container(containerName) image image(containerName)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestChains_OfABarrierBesideTheVerbs: it has a chain of its own, which no other verb of the place passes. A verb below passes it.
func TestChains_OfABarrierBesideTheVerbs(t *testing.T) {
	const vaults = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: " + `{name: vaults.example.com, annotations: {fieldperm.dev/permission-verbs: ` +
		`'{"v1":[{"path":".spec.items","verb":"example.com/y","excluded":true}]}'}}` + "\nspec: " + `{group: example.com, scope: Namespaced, names: {kind: Vault, plural: vaults}, versions: [` +
		`{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {items: {type: object, additionalProperties: {type: object, properties: {secret: {type: string}}}}}}}}}}]}`
	s := schematest.Traced(t, vaults, schematest.PermissionSchema("a", "example.com", "Vault", "{path: .spec.items, verb: example.com/w}, {path: '.spec.items[*].secret', verb: example.com/v}"))
	vault := of(t, s, "example.com", "v1", "Vault", "vaults", "")
	for path, want := range map[string]string{
		`spec.items`:             "generic * specification example.com/w | [generic] [*] [specification] [example.com/w] example.com/y",
		`spec.items["x"].secret`: "generic * specification example.com/w example.com/v | [generic] [*] [specification] [example.com/w] example.com/y example.com/v",
	} {
		if got := chainOf(t, vault, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestChains_AreThoseOfTheSchema compares the verbs of chains with the permissions on the way, for every place of some kinds.
func TestChains_AreThoseOfTheSchema(t *testing.T) {
	s := schematest.Traced(t)
	for _, c := range [][2]string{{"apps", "Deployment"}, {"", "Pod"}, {"", "Namespace"}, {"networking.k8s.io", "Ingress"}} {
		gvk := runtimeschema.GroupVersionKind{Group: c[0], Version: "v1", Kind: c[1]}
		resource := schema.ResourceRef{Group: c[0], Version: "v1", Resource: map[string]string{"Deployment": "deployments", "Pod": "pods", "Namespace": "namespaces", "Ingress": "ingresses"}[c[1]]}
		k, err := s.KindFor(gvk, resource)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := Of(s, gvk, resource)
		if err != nil {
			t.Fatal(err)
		}
		places := 0
		k.Guarded(20_000, func(at fieldpath.Pattern, n *schema.Node) {
			p, err := tree.Find(at.String())
			if err != nil {
				t.Error(err)
				return
			}
			places++
			var got []string
			for _, v := range p.Node().Verbs {
				got = append(got, v.Text)
			}
			var want []string
			for _, permission := range n.Permissions() {
				if !permission.BarsOnly() {
					want = append(want, permission.Describe())
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: %q, want %q", c[1], at, got, want)
			}
		})
		listed := 0
		for _, paths := range tree.Verbs() {
			listed += len(paths)
		}
		if places < 15 || listed < places {
			t.Errorf("%s: %d places, %d are listed", c[1], places, listed)
		}
	}
}

func TestFind(t *testing.T) {
	s := schematest.Traced(t, widgets)
	pod, namespace := of(t, s, "", "v1", "Pod", "pods", ""), of(t, s, "", "v1", "Namespace", "namespaces", "")
	for text, want := range map[string]string{
		"":                                   "",
		".":                                  "",
		".spec.containers[*].image":          ".spec.containers[*].image",
		"spec.containers.image":              ".spec.containers[*].image",
		"spec.containers":                    ".spec.containers",
		`spec.containers[name="we]b"].image`: ".spec.containers[*].image",
		`.spec.containers[0].image`:          ".spec.containers[*].image",
		`.metadata.finalizers[="a\"]b"]`:     ".metadata.finalizers[*]",
		"spec.nodeSelector.disk":             ".spec.nodeSelector.disk",
		`.spec.nodeSelector["a.b/c"]`:        `.spec.nodeSelector["a.b/c"]`,
	} {
		p, err := pod.Find(text)
		if err != nil || p.Path.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, p, err, want)
		}
	}
	// A key that begins with a prefix of the schema has the verbs of the prefix.
	p, err := namespace.Find(`.metadata.annotations["applyset.kubernetes.io/tooling"]`)
	if err != nil || !slices.ContainsFunc(p.Node().Verbs, func(v *Verb) bool { return v.Text == "granular:applySet" }) {
		t.Errorf("%v, %v", p, err)
	}
	for text, want := range map[string]string{
		"spec.container":               `".spec" has no field "container": use "containers"`,
		"spec.zzzzzz":                  "use one of activeDeadlineSeconds",
		"spec.containers.zzzzzz":       `".spec.containers[*]" has no field`,
		"spec.hostNetwork.x":           "where no field is known: leave it out",
		"spec[*]":                      `".spec" is no list or map: name one of its fields`,
		"zzzzzz":                       `the object has no field "zzzzzz"`,
		"spec..x":                      "is no field name",
		`.spec.nodeSelector["a`:        "is not closed",
		`spec.containers[name="web".x`: "",
	} {
		if _, err := pod.Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestFind_KeepsWhatThePathSelects: the pattern has [*] for each item, and the place knows which one was meant.
func TestFind_KeepsWhatThePathSelects(t *testing.T) {
	pod := of(t, schematest.Traced(t), "", "v1", "Pod", "pods", "")
	for text, want := range map[string]string{
		`.spec.containers[name="a"].image`:      `name="a" map[name:a]`,
		`.spec.containers[0].image`:             `0 map[]`,
		`.spec.containers[*].image`:             "",
		`spec.containers.image`:                 "",
		`.spec.containers[*].ports[hostPort=1]`: "",
	} {
		p, err := pod.Find(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s, has := p.Selection(1 + 1); has {
			got = fmt.Sprint(s.Text, " ", s.Keys)
		}
		if got != want {
			t.Errorf("%s selects %q, want %q", text, got, want)
		}
		if _, has := p.Above(2).Selection(2); has {
			t.Errorf("%s: the list itself selects an item", text)
		}
	}
}

func TestOf_ASubresourceHasTheFieldsThatItWrites(t *testing.T) {
	s := schematest.Traced(t, widgets)
	has := func(k *Kind, path string) bool {
		_, err := k.Find(path)
		return err == nil
	}
	status := of(t, s, "example.com", "v1", "Widget", "widgets", "status")
	if !has(status, ".status.phase") || has(status, ".spec") {
		t.Error("the subresource status has not the status alone")
	}
	ephemeral := of(t, s, "", "v1", "Pod", "pods", "ephemeralcontainers")
	if !has(ephemeral, ".spec.ephemeralContainers") || has(ephemeral, ".spec.containers") {
		t.Error("the subresource ephemeralcontainers has not its containers alone")
	}
	if got := status.ResourceName(); got != "widgets/status" {
		t.Error(got)
	}
	if _, err := Of(s, runtimeschema.GroupVersionKind{Kind: "None"}, schema.ResourceRef{}); err == nil {
		t.Error("a kind that is not known has a tree")
	}
}

func TestNew(t *testing.T) {
	f := New(schematest.Traced(t, widgets))
	var titles []string
	for _, k := range f.Kinds {
		titles = append(titles, k.Group+"/"+k.Kind)
		if k.Kind == "Scale" || k.Version == "v1beta2" && k.Group == "apps" {
			t.Errorf("%s is no kind of its own that clients send", k)
		}
	}
	if !slices.IsSorted(titles) || !slices.Contains(titles, "example.com/Widget") || len(titles) < 80 {
		t.Errorf("%d kinds: %q", len(titles), titles)
	}
	nodes := map[*Node]bool{}
	var visit func(*Node)
	visit = func(n *Node) {
		if !nodes[n] {
			nodes[n] = true
			for _, c := range n.Children {
				visit(c.Node)
			}
		}
	}
	for _, k := range f.Kinds {
		visit(k.Root)
	}
	if len(nodes) > 3000 {
		t.Errorf("%d nodes: equal parts are not shared", len(nodes))
	}
	if len(New(schematest.Schema(t)).Kinds) > 0 {
		t.Error("a schema without a trace has trees")
	}
}

// Values of any form have no fields; fields of types that contain themselves end where they repeat.
func TestPlace_Repeats(t *testing.T) {
	s := schematest.Traced(t, widgets)
	free, err := of(t, s, "example.com", "v1", "Widget", "widgets", "").Find(".spec.free")
	if err != nil || len(free.Node().Children) > 1 {
		t.Errorf("unknown fields have %d fields, %v", len(free.Node().Children), err)
	}
	crd := of(t, s, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "")
	p, err := crd.Find(".spec.versions[*].schema.openAPIV3Schema.properties[*]")
	if err != nil {
		t.Fatal(err)
	}
	if again := p.Repeats(); again == nil || again.Path.String() != ".spec.versions[*].schema.openAPIV3Schema" {
		t.Errorf("repeats %v", again)
	}
}

// TestChildKnowsTheKeyThatAMapSinglesOut as Find does for the same key.
func TestChildKnowsTheKeyThatAMapSinglesOut(t *testing.T) {
	k := of(t, schematest.Traced(t), "apps", "v1", "Deployment", "deployments", "")
	p, err := k.Find(".spec.template.metadata.annotations")
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, c := range p.Node().Children {
		chain := p.Child(c).Chains()[0]
		last := chain[len(chain)-1].Verb
		switch {
		case c.Any:
			if last != "granular:templateAnnotation(prefix of annotationKey)" {
				t.Errorf("any key: %s", last)
			}
		case !strings.HasSuffix(c.Name, "/"):
			keys++
			found, err := k.Find(".spec.template.metadata.annotations" + c.Element.String())
			if err != nil {
				t.Fatal(err)
			}
			want := found.Chains()[0]
			if last != want[len(want)-1].Verb || strings.Contains(last, "annotationKey") {
				t.Errorf("%s: %s, want %s", c.Name, last, want[len(want)-1].Verb)
			}
		}
	}
	if keys == 0 {
		t.Error("the map singles out no key")
	}
}

// TestFindTakesKeysThatAreNumbers between keys that are texts.
func TestFindTakesKeysThatAreNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`name="a,b=c",port=80`:   `map[name:a,b=c port:80]`,
		`port=80,protocol="TCP"`: `map[port:80 protocol:TCP]`,
		`="x"`:                   `map[:x]`,
		`0`:                      `map[]`,
	} {
		if got := fmt.Sprint(keysOf(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

package asks

import "fmt"

// Object is an object with fields to write.
type Object struct {
	// Resource, Group, Version and Kind are its type.
	Resource, Group, Version, Kind string
	Name                           string
	// Manifest is the object before each write, in YAML.
	Manifest string
	Fields   []Field
}

// Field is a field and the values that it may get. The object has none of the values before.
type Field struct {
	// Path is the path as users write it.
	Path string
	// Steps lead to the field: names of fields and keys, and Items.
	Steps  []any
	Values []any
}

// Item is the item of a list with a name.
type Item string

// Namespace is the namespace of the objects.
const Namespace = "shop"

// Objects are the objects of the test.
func Objects() []Object {
	return []Object{
		{
			Resource: "deployments", Group: "apps", Version: "v1", Kind: "Deployment", Name: "web",
			Manifest: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, example.com/tier: front}, annotations: {note: first}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1"}
      - {name: side, image: "side:1"}
`,
			Fields: []Field{
				{".spec.replicas", []any{"spec", "replicas"}, []any{int64(1), int64(2), int64(7)}},
				{".spec.paused", []any{"spec", "paused"}, []any{true}},
				{".spec.minReadySeconds", []any{"spec", "minReadySeconds"}, []any{int64(3), int64(4)}},
				{`.metadata.labels["example.com/tier"]`, []any{"metadata", "labels", "example.com/tier"}, []any{"back", "middle"}},
				{`.metadata.labels["team"]`, []any{"metadata", "labels", "team"}, []any{"red", "blue"}},
				{`.metadata.annotations["note"]`, []any{"metadata", "annotations", "note"}, []any{"second"}},
				{`.metadata.annotations["example.com/owner"]`, []any{"metadata", "annotations", "example.com/owner"}, []any{"me"}},
				{`.spec.template.spec.containers[name="web"].image`, []any{"spec", "template", "spec", "containers", Item("web"), "image"}, []any{"web:2", "evil:1"}},
				{`.spec.template.spec.containers[name="side"].image`, []any{"spec", "template", "spec", "containers", Item("side"), "image"}, []any{"side:2", "evil:1"}},
				{`.spec.template.spec.containers[name="web"].workingDir`, []any{"spec", "template", "spec", "containers", Item("web"), "workingDir"}, []any{"/srv"}},
				{`.spec.template.spec.hostNetwork`, []any{"spec", "template", "spec", "hostNetwork"}, []any{true}},
				{`.spec.template.metadata.labels["example.com/zone"]`, []any{"spec", "template", "metadata", "labels", "example.com/zone"}, []any{"a"}},
				{`.spec.strategy.rollingUpdate.maxSurge`, []any{"spec", "strategy", "rollingUpdate", "maxSurge"}, []any{int64(2)}},
			},
		},
		{
			Resource: "configmaps", Version: "v1", Kind: "ConfigMap", Name: "colours",
			Manifest: `
apiVersion: v1
kind: ConfigMap
metadata: {name: colours, namespace: shop, labels: {app: web}}
data: {wall: white, locked: "no"}
`,
			Fields: []Field{
				{`.data["wall"]`, []any{"data", "wall"}, []any{"red", "blue"}},
				{`.data["floor"]`, []any{"data", "floor"}, []any{"red", "grey"}},
				{`.data["locked"]`, []any{"data", "locked"}, []any{"yes"}},
				{`.metadata.labels["app"]`, []any{"metadata", "labels", "app"}, []any{"shop"}},
				{`.immutable`, []any{"immutable"}, []any{false}},
			},
		},
		{
			Resource: "gadgets", Group: "example.com", Version: "v1", Kind: "Gadget", Name: "one",
			Manifest: `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: one, namespace: shop}
spec: {size: 1, danger: false, color: white, tags: {a: x}, parts: [{name: wheel, count: 1}, {name: door, count: 2}]}
`,
			Fields: []Field{
				{".spec.size", []any{"spec", "size"}, []any{int64(2), int64(5), int64(6), int64(9)}},
				{".spec.danger", []any{"spec", "danger"}, []any{true}},
				{".spec.color", []any{"spec", "color"}, []any{"red", "black"}},
				{`.spec.tags["a"]`, []any{"spec", "tags", "a"}, []any{"y", "z"}},
				{`.spec.tags["b"]`, []any{"spec", "tags", "b"}, []any{"y"}},
				{`.spec.parts[name="wheel"].count`, []any{"spec", "parts", Item("wheel"), "count"}, []any{int64(4)}},
				{`.metadata.annotations["note"]`, []any{"metadata", "annotations", "note"}, []any{"second"}},
			},
		},
	}
}

// Set sets the field in an object.
func (f *Field) Set(object map[string]any, value any) error {
	var at any = object
	for i, step := range f.Steps {
		last := i == len(f.Steps)-1
		switch step := step.(type) {
		case Item:
			items, _ := at.([]any)
			at = nil
			for _, item := range items {
				if one, isObject := item.(map[string]any); isObject && one["name"] == string(step) {
					at = one
				}
			}
			if at == nil {
				return fmt.Errorf("%s: the object has no item %q", f.Path, step)
			}
		case string:
			fields, isObject := at.(map[string]any)
			if !isObject {
				return fmt.Errorf("%s: %q is in no object", f.Path, step)
			}
			if last {
				fields[step] = value
				return nil
			}
			if fields[step] == nil {
				fields[step] = map[string]any{}
			}
			at = fields[step]
		}
	}
	return fmt.Errorf("%s: ends with an item", f.Path)
}

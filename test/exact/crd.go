package exact

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// definitions draws CustomResourceDefinitions with permissions.
type definitions struct {
	*draw
	permissions []v1alpha1.FieldPermission
	verbs       int
	// emitted are the parameters of the path that is being drawn.
	emitted []string
}

type properties = map[string]any

// definition returns a CustomResourceDefinition as JSON. Its permissions are in the annotation.
func (d *definitions) definition() []byte {
	schemas, permissions := map[string]properties{}, map[string][]v1alpha1.FieldPermission{}
	names := []string{"v1", "v2"}[:1]
	if d.oneIn(6) {
		names = []string{"v1", "v2"}
	}
	for _, name := range names {
		d.permissions = []v1alpha1.FieldPermission{}
		root := d.object("", 0)
		if d.oneIn(4) {
			root["x-kubernetes-preserve-unknown-fields"] = true
		}
		if d.oneIn(6) {
			// Server-side apply shows null in metadata.
			d.permissions = append(d.permissions, v1alpha1.FieldPermission{Path: `.metadata.labels["a"]`, Verb: "example.com/m", ExcludedWhen: pick(d.draw, []string{"self == null", "size(self) > 2"})})
		}
		if p, ok := root["properties"].(properties); ok && !d.oneIn(8) {
			p["spec"] = d.object(".spec", 1)
		}
		schemas[name], permissions[name] = root, d.permissions
	}
	// If a webhook converts, the fields of another version are kept. Otherwise they are lost, and every write through this version is
	// charged at the root.
	conversion := pick(d.draw, []string{"None", "Webhook"})
	for _, list := range permissions {
		// fieldperm refuses a version that would prune a field behind a barrier of another version.
		if len(names) > 1 && slices.ContainsFunc(list, func(p v1alpha1.FieldPermission) bool { return p.Excluded || p.ExcludedWhen != "" }) {
			conversion = "Webhook"
		}
	}
	return crd(schemas, permissions, conversion)
}

// fieldName draws from a few names. Some of them must be quoted in a path.
func (d *definitions) fieldName() string {
	return pick(d.draw, []string{"a", "b", "c", "d", "name", "e", "A", "f-g", "a.b", "a/x", "é", "\"", "[*]", "metadata"})
}

// step is the pattern of a field below another.
func step(path, name string) string {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return fmt.Sprintf("%s[%q]", path, name)
		}
	}
	return path + "." + name
}

func (d *definitions) schema(path string, depth int) properties {
	kinds := 10
	if depth > 5 {
		kinds = 5
	}
	var out properties
	switch d.IntN(kinds) {
	case 0:
		out = properties{"type": "integer"}
	case 1:
		out = properties{"type": pick(d.draw, []string{"number", "boolean"})}
	case 2:
		out = properties{"x-kubernetes-int-or-string": true}
	case 3, 4:
		out = properties{"type": "string"}
	case 5:
		out = d.free(path)
	case 6, 7:
		out = d.list(path, depth)
	default:
		out = d.object(path, depth)
	}
	if d.oneIn(4) {
		out["nullable"] = true
	}
	d.giveDefault(out)
	d.guard(path, out)
	return out
}

func (d *definitions) giveDefault(out properties) {
	if !d.oneIn(5) {
		return
	}
	switch out["type"] {
	case "integer":
		out["default"] = pick(d.draw, []int{0, 1, 80})
	case "number":
		out["default"] = pick(d.draw, []float64{0, 1, 1.5})
	case "boolean":
		out["default"] = d.oneIn(2)
	case "string":
		out["default"] = pick(d.draw, []string{"", "a", "TCP", "é"})
	case "object":
		out["default"] = pick(d.draw, []any{map[string]any{}, map[string]any{"a": "a"}})
	case "array":
		out["default"] = pick(d.draw, []any{[]any{}, []any{"a"}})
	}
}

// free draws a schema that keeps unknown fields: any value, an object, or an embedded resource.
func (d *definitions) free(path string) properties {
	switch d.IntN(4) {
	case 0:
		return properties{"x-kubernetes-preserve-unknown-fields": true}
	case 1:
		return properties{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true}
	case 2:
		out := d.object(path, 4)
		out["x-kubernetes-preserve-unknown-fields"] = true
		return out
	default:
		return properties{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
}

func (d *definitions) object(path string, depth int) properties {
	out := properties{"type": "object"}
	if path != "" && d.oneIn(6) {
		out["x-kubernetes-map-type"] = pick(d.draw, []string{"atomic", "granular"})
	}
	if path != "" && d.oneIn(4) {
		was := d.emitted
		if out["x-kubernetes-map-type"] != "atomic" && d.oneIn(2) {
			d.source(path)
		}
		out["additionalProperties"] = d.schema(path+"[*]", depth+1)
		d.emitted = was
		return out
	}
	return d.structure(out, path, depth)
}

func (d *definitions) structure(out properties, path string, depth int) properties {
	embedded := path != "" && d.oneIn(12)
	fields := properties{}
	for range 1 + d.IntN(4) {
		name := d.fieldName()
		if _, twice := fields[name]; twice || name == "metadata" && (path == "" || embedded) {
			continue
		}
		was := d.emitted
		fields[name] = d.schema(step(path, name), depth+1)
		d.emitted = was
	}
	out["properties"] = fields
	if embedded {
		out["x-kubernetes-embedded-resource"] = true
	}
	return out
}

func (d *definitions) list(path string, depth int) properties {
	out := properties{"type": "array"}
	was := d.emitted
	defer func() { d.emitted = was }()
	switch d.IntN(5) {
	case 0, 1:
		keys := []string{"name", "port", "protocol", "d", "e", "f"}[:1+d.IntN(3)]
		if d.oneIn(8) {
			keys = keys[:6]
		}
		if d.oneIn(4) {
			keys = []string{"protocol"}
		}
		item := properties{"type": "object"}
		if d.oneIn(8) {
			item["x-kubernetes-map-type"] = "atomic"
		}
		// Keys come first, because their parameters are for the rest of the item.
		sources := map[string]bool{}
		for _, key := range keys {
			if sources[key] = d.oneIn(2); sources[key] {
				d.source(step(path+"[*]", key))
			}
		}
		fields := d.structure(item, path+"[*]", depth+1)["properties"].(properties)
		for _, key := range keys {
			if _, drawn := fields[key]; drawn {
				d.drop(step(path+"[*]", key), sources[key])
			}
		}
		for _, key := range keys {
			fields[key] = d.key(key)
		}
		d.guard(path+"[*]", item)
		out["items"], out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = item, "map", keys
	case 2:
		out["x-kubernetes-list-type"] = "set"
		out["items"] = pick(d.draw, []properties{{"type": "string"}, {"type": "integer"}, {"x-kubernetes-int-or-string": true}, {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": properties{"type": "string"}}})
		d.guard(path+"[*]", out["items"].(properties))
	default:
		if d.oneIn(2) {
			out["x-kubernetes-list-type"] = "atomic"
		}
		out["items"] = d.schema(path+"[*]", depth+1)
	}
	return out
}

func (d *definitions) key(name string) properties {
	var out properties
	switch name {
	case "port":
		out = properties{"type": "integer"}
		if d.oneIn(3) {
			out["default"] = 80
		}
	case "protocol":
		out = properties{"type": "string"}
		if d.oneIn(2) {
			out["default"] = "TCP"
		}
	default:
		out = properties{"type": pick(d.draw, []string{"string", "string", "boolean", "number"})}
	}
	return out
}

// source makes the place emit a parameter for the places below it.
func (d *definitions) source(path string) {
	if d.at(path) != nil {
		return
	}
	name := pick(d.draw, []string{"p", "q"})
	d.permissions = append(d.permissions, v1alpha1.FieldPermission{Path: path, ParameterSource: name})
	d.emitted = append(d.emitted[:len(d.emitted):len(d.emitted)], name)
}

func (d *definitions) at(path string) *v1alpha1.FieldPermission {
	for i := range d.permissions {
		if d.permissions[i].Path == path {
			return &d.permissions[i]
		}
	}
	return nil
}

// drop removes the entries for a place and the places below it, because the place becomes a key.
func (d *definitions) drop(path string, source bool) {
	d.permissions = slices.DeleteFunc(d.permissions, func(p v1alpha1.FieldPermission) bool {
		return p.Path != path && strings.HasPrefix(p.Path, path) && strings.ContainsAny(p.Path[len(path):len(path)+1], ".[")
	})
	if p := d.at(path); p != nil && !source {
		p.ParameterSource = ""
		if p.ParameterizedBy == "s" {
			p.ParameterizedBy, p.ParameterTreatment, p.ParameterExpression = "", "", ""
		}
	}
	d.permissions = slices.DeleteFunc(d.permissions, func(p v1alpha1.FieldPermission) bool { return p.Verb == "" && p.ParameterSource == "" })
}

// guard gives a place a verb in half of the cases.
func (d *definitions) guard(path string, s properties) {
	if path == "" || !d.oneIn(2) {
		return
	}
	p := d.at(path)
	if p == nil {
		d.permissions = append(d.permissions, v1alpha1.FieldPermission{Path: path})
		p = &d.permissions[len(d.permissions)-1]
	}
	if p.Verb != "" {
		return
	}
	d.verbs++
	p.Verb = fmt.Sprintf("example.com/v%d", d.verbs%40)
	emitted := d.emitted
	// A place that may also be an object emits only to the places below it.
	isScalar := slices.Contains([]any{"string", "integer", "number", "boolean"}, s["type"])
	if isScalar && p.ParameterSource == "" && d.oneIn(4) {
		p.ParameterSource = "s"
		emitted = append(emitted[:len(emitted):len(emitted)], "s")
	}
	if len(emitted) > 0 && !d.oneIn(3) {
		p.ParameterizedBy = pick(d.draw, emitted)
		switch d.IntN(4) {
		case 0:
			p.ParameterTreatment = v1alpha1.TreatmentSlashDelimitedPrefix
		case 1:
			p.ParameterExpression = pick(d.draw, []string{"self.lowerAscii()", "self.substring(1)"})
		}
	}
	switch when := d.oneIn(2); {
	case d.oneIn(6):
		p.Excluded = true
	case when && (isScalar || s["x-kubernetes-int-or-string"] == true):
		p.ExcludedWhen = pick(d.draw, []string{"self == true", "self != oldSelf", "self == null", "oldSelf > 1", "size(self) > 1"})
	}
}

// compiled loads a definition as the webhook would, with the catalogue's entries for every kind.
func compiled(raw []byte, catalogue []compile.PermissionDocument) ([]*subject, []error) {
	docs, errs := load.CRD("random", raw)
	if len(errs) > 0 {
		return nil, errs
	}
	docs.Permissions = append(catalogue[:len(catalogue):len(catalogue)], docs.Permissions...)
	s, errs := compile.Compile(docs)
	if len(errs) > 0 {
		return nil, errs
	}
	loose := loosen(docs.Topologies[0].Types)
	var out []*subject
	for _, kind := range s.Kinds() {
		one := newSubject(kind, &docs.Topologies[0], loose)
		one.source = string(raw)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *subject) int { return strings.Compare(a.kind.Version, b.kind.Version) })
	related(out)
	return out, nil
}

// crd writes a CustomResourceDefinition with several versions, each with a schema and permissions.
func crd[S, P any](schemas map[string]S, permissions map[string]P, conversion string) []byte {
	versions := []any{}
	for _, name := range []string{"v1", "v2"} {
		if s, ok := schemas[name]; ok {
			versions = append(versions, map[string]any{"name": name, "served": true, "storage": name == "v1", "schema": map[string]any{"openAPIV3Schema": s}})
		}
	}
	text, err := json.Marshal(permissions)
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "randoms.example.com", "annotations": map[string]any{v1alpha1.PermissionVerbsAnnotation: string(text)}},
		"spec": map[string]any{
			"group": "example.com", "scope": "Cluster", "names": map[string]any{"kind": "Random", "plural": "randoms"},
			"versions": versions, "conversion": map[string]any{"strategy": conversion},
		},
	})
	if err != nil {
		return nil
	}
	return raw
}

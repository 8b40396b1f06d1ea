package oracle

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// fieldNames of drawn schemas.
var fieldNames = []string{"mode", "policy", "items", "extra", "one", "template", "ports", "size", "limit", "owner"}

// drawRoot draws the schema of a custom resource.
func drawRoot(d *draw, scale bool) properties {
	spec := properties{"type": "object", "properties": drawFields(d, 3+d.IntN(4), 0)}
	status := properties{
		"phase":    properties{"type": "string"},
		"replicas": properties{"type": "integer"},
		"conditions": properties{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
			"items": properties{"type": "object", "required": []any{"type"}, "properties": properties{"type": properties{"type": "string"}, "status": properties{"type": "string"}}},
		},
	}
	if scale {
		spec["properties"].(properties)["replicas"] = properties{"type": "integer"}
	}
	out := properties{"type": "object", "properties": properties{"spec": spec, "status": properties{"type": "object", "properties": status}}}
	if d.oneIn(6) {
		out["x-kubernetes-preserve-unknown-fields"] = true
	}
	return normal(out)
}

// normal is the schema in the form that JSON decoding produces.
func normal(s properties) properties { return runtime.DeepCopyJSON(s) }

func drawFields(d *draw, n, depth int) properties {
	out := properties{}
	for range n {
		out[pick(d, fieldNames)] = drawSchema(d, depth+1)
	}
	return out
}

// drawSchema draws a schema with one of the structural features.
func drawSchema(d *draw, depth int) properties {
	kinds := 13
	if depth > 3 {
		kinds = 5
	}
	var out properties
	switch d.IntN(kinds) {
	case 0, 1:
		out = properties{"type": "string"}
		if d.oneIn(3) {
			out["default"] = pick(d, []any{"open", "a", ""})
		}
	case 2:
		out = properties{"type": "integer"}
		if d.oneIn(3) {
			out["default"] = int64(d.IntN(3))
		}
	case 3:
		out = properties{"type": pick(d, []any{"boolean", "number"})}
	case 4:
		out = properties{"x-kubernetes-int-or-string": true}
	case 5:
		out = properties{"x-kubernetes-preserve-unknown-fields": true}
	case 6:
		out = properties{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		if d.oneIn(2) {
			out["properties"] = drawFields(d, 2, depth)
		}
	case 7:
		out = properties{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
	case 8:
		out = properties{"type": "object", "additionalProperties": pick(d, []any{any(drawSchema(d, depth+1)), any(drawSchema(d, depth+1)), true})}
	case 9:
		out = drawList(d, depth)
	default:
		out = properties{"type": "object", "properties": drawFields(d, 1+d.IntN(3), depth)}
		if d.oneIn(5) {
			out["x-kubernetes-map-type"] = pick(d, []any{"atomic", "granular"})
		}
		if d.oneIn(6) {
			out["default"] = properties{}
		}
	}
	if d.oneIn(5) {
		out["nullable"] = true
	}
	return out
}

func drawList(d *draw, depth int) properties {
	out := properties{"type": "array"}
	switch d.IntN(4) {
	case 0:
		out["x-kubernetes-list-type"], out["items"] = "set", properties{"type": "string"}
	case 1:
		out["items"] = drawSchema(d, depth+1)
	case 2:
		out["x-kubernetes-list-type"], out["items"] = "atomic", drawSchema(d, depth+1)
	default:
		fields := drawFields(d, 2, depth)
		fields["name"] = properties{"type": "string"}
		out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", []any{"name"}
		out["items"] = properties{"type": "object", "required": []any{"name"}, "properties": fields}
	}
	if items := out["items"].(properties); out["x-kubernetes-list-type"] != "map" && out["x-kubernetes-list-type"] != "set" {
		delete(items, "default")
	}
	return out
}

// vary makes one version differ from another, in place.
func vary(d *draw, root properties) {
	all := schemasIn(root["properties"].(properties)["spec"].(properties))
	s := pick(d, all)
	fields, structure := s["properties"].(properties)
	switch d.IntN(9) {
	case 0, 1:
		// The specification must keep its fields, so it is not replaced.
		fields = pick(d, slices.DeleteFunc(all, func(s properties) bool { _, structure := s["properties"].(properties); return !structure }))["properties"].(properties)
		if len(fields) > 1 {
			delete(fields, pick(d, sortedKeys(fields)))
		}
	case 2:
		if structure {
			fields[fmt.Sprintf("new%d", d.IntN(3))] = properties{"type": "string"}
		}
	case 3:
		if s["x-kubernetes-preserve-unknown-fields"] == true {
			if delete(s, "x-kubernetes-preserve-unknown-fields"); s["type"] == nil || s["x-kubernetes-embedded-resource"] == true && !structure {
				s["x-kubernetes-preserve-unknown-fields"] = true
			}
		} else if s["type"] == "object" && s["additionalProperties"] == nil {
			s["x-kubernetes-preserve-unknown-fields"] = true
		}
	case 4:
		if s["additionalProperties"] != nil {
			s["additionalProperties"] = true
		}
	case 5:
		delete(s, "x-kubernetes-embedded-resource")
	case 6:
		if s["nullable"] == true {
			delete(s, "nullable")
		} else {
			s["nullable"] = true
		}
	case 7:
		switch s["type"] {
		case "string":
			s["default"] = pick(d, []any{"open", "closed"})
		case "integer":
			s["default"] = int64(7)
		}
	default:
		if s["default"] != nil {
			delete(s, "default")
		}
	}
}

// varyFields adds and drops only fields of the specification: a webhook that keeps them in an annotation converts such versions without
// loss.
func varyFields(d *draw, root properties) {
	fields := root["properties"].(properties)["spec"].(properties)["properties"].(properties)
	if d.oneIn(2) && len(fields) > 1 {
		delete(fields, pick(d, sortedKeys(fields)))
	} else {
		fields[fmt.Sprintf("new%d", d.IntN(3))] = properties{"type": "string"}
	}
}

// schemasIn lists a schema and the schemas below it.
func schemasIn(s properties) []properties {
	out := []properties{s}
	if fields, ok := s["properties"].(properties); ok {
		for _, name := range sortedKeys(fields) {
			if inner, ok := fields[name].(properties); ok {
				out = append(out, schemasIn(inner)...)
			}
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := s[name].(properties); ok {
			out = append(out, schemasIn(inner)...)
		}
	}
	return out
}

// draw draws an object that fits the schema of a version.
func (c *custom) draw(d *draw, versionName, namespace, name string) (map[string]any, error) {
	v := c.version(versionName)
	out, ok := drawValue(d, v.schema, 0).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the schema of %s is of no object", c.kind)
	}
	delete(out, "status")
	out["apiVersion"], out["kind"] = c.group+"/"+v.name, c.kind
	out["metadata"] = map[string]any{"name": name}
	if !c.cluster {
		metadata(out)["namespace"] = namespace
	}
	if spec, ok := out["spec"].(map[string]any); ok && c.scale {
		spec["replicas"] = int64(d.IntN(4))
	}
	return out, nil
}

func drawValue(d *draw, s properties, depth int) any {
	if s["nullable"] == true && d.oneIn(4) {
		return nil
	}
	fields, _ := s["properties"].(properties)
	switch {
	case s["x-kubernetes-int-or-string"] == true:
		return pick(d, []any{int64(1), "50%"})
	case s["x-kubernetes-embedded-resource"] == true:
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "labels": map[string]any{"a": "b"}}, "data": map[string]any{"a": "b"}}
	case s["type"] == "string":
		return pick(d, []any{"a", "b", "closed"})
	case s["type"] == "integer":
		return int64(1 + d.IntN(9))
	case s["type"] == "number":
		return pick(d, []any{1.5, int64(2)})
	case s["type"] == "boolean":
		return d.oneIn(2)
	case s["type"] == "array":
		return drawItems(d, s, depth)
	}
	out := map[string]any{}
	for _, name := range sortedKeys(fields) {
		if inner, ok := fields[name].(properties); ok && (depth == 0 || !d.oneIn(4)) {
			out[name] = drawValue(d, inner, depth+1)
		}
	}
	switch inner := s["additionalProperties"].(type) {
	case properties:
		for _, key := range []string{"one", "two"} {
			out[key] = drawValue(d, inner, depth+1)
		}
	case bool:
		out["one"] = map[string]any{"locked": true}
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true && depth > 0 {
		out["unknown"] = pick(d, []any{map[string]any{"locked": true}, "x", []any{int64(1)}})
	}
	return out
}

func drawItems(d *draw, s properties, depth int) []any {
	items, _ := s["items"].(properties)
	out := []any{}
	for i := range 1 + d.IntN(2) {
		item := drawValue(d, items, depth+1)
		if m, ok := item.(map[string]any); ok && s["x-kubernetes-list-type"] == "map" {
			m["name"] = fmt.Sprintf("n%d", i)
		}
		if s["x-kubernetes-list-type"] == "set" {
			item = fmt.Sprintf("m%d", i)
		}
		if item != nil {
			out = append(out, item)
		}
	}
	return out
}

package load

import (
	"encoding/json"
	"fmt"
	"testing"
)

// fieldsEach is how many fields a generated definition has.
const fieldsEach = 200

type object = map[string]any

// customDefinitions returns definitions of one version, in the form in which an API server sends them. They have the style of operators:
// list-maps, sets, defaults, free-form parts and nested structs. A third of the field names is unique to each definition.
func customDefinitions(tb testing.TB, n int) [][]byte {
	tb.Helper()
	out := make([][]byte, n)
	for i := range out {
		raw, err := json.Marshal(customDefinition(tb, i))
		if err != nil {
			tb.Fatal(err)
		}
		out[i] = raw
	}
	return out
}

func customDefinition(tb testing.TB, i int) object {
	tb.Helper()
	permissions, err := json.Marshal(object{"v1": []object{
		{"path": ".spec.replicas", "verb": "example.com/size"},
		{"path": ".spec.paused", "verb": "example.com/pause", "excluded": true},
		{"path": ".spec.containers[*].name", "parameterSource": "container"},
		{"path": ".spec.containers[*].image", "verb": "example.com/containerImage", "parameterizedBy": "container"},
		{"path": ".spec.part3.next", "verb": "example.com/tuning"},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	spec := object{"replicas": object{"type": "integer", "default": 1}, "paused": object{"type": "boolean"}, "containers": containers()}
	for j := range 6 {
		spec[fmt.Sprintf("part%d", j)] = part(fmt.Sprintf("machine%dPart%d", i, j), 2)
	}
	root := properties(object{"spec": properties(spec), "status": status()})
	if got := countFields(root); got != fieldsEach {
		tb.Fatalf("a definition has %d fields", got)
	}
	plural, group := fmt.Sprintf("machine%ds", i), fmt.Sprintf("group%d.example.com", i/5)
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": plural + "." + group, "annotations": object{"fieldperm.dev/permission-verbs": string(permissions)}},
		"spec": object{
			"group": group, "scope": "Namespaced",
			"names":    object{"kind": fmt.Sprintf("Machine%d", i), "plural": plural},
			"versions": []object{{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": root}}},
		},
	}
}

func part(name string, depth int) object {
	quantities := func() object {
		return object{"type": "object", "additionalProperties": object{"x-kubernetes-int-or-string": true}}
	}
	fields := object{
		"enabled":      object{"type": "boolean", "default": true},
		"image":        object{"type": "string", "description": "What runs."},
		"labels":       object{"type": "object", "additionalProperties": object{"type": "string"}},
		name + "Name":  object{"type": "string", "maxLength": 63},
		name + "Limit": object{"type": "integer", "minimum": 0},
		"resources":    properties(object{"limits": quantities(), "requests": quantities()}),
	}
	if depth == 0 {
		fields[name+"Settings"] = object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		return properties(fields)
	}
	fields["args"] = object{"type": "array", "items": object{"type": "string"}}
	fields["next"] = part(fmt.Sprintf("%sOf%d", name, depth), depth-1)
	return properties(fields)
}

func containers() object {
	return listMap(properties(object{
		"name":  object{"type": "string"},
		"image": object{"type": "string"},
		"env":   listMap(properties(object{"name": object{"type": "string"}, "value": object{"type": "string"}}), "name"),
		"ports": listMap(properties(object{"containerPort": object{"type": "integer"}, "protocol": object{"type": "string", "default": "TCP"}}), "containerPort", "protocol"),
	}), "name")
}

func status() object {
	condition := object{}
	for _, name := range []string{"type", "status", "reason", "message", "lastTransitionTime"} {
		condition[name] = object{"type": "string"}
	}
	return properties(object{
		"observedGeneration": object{"type": "integer", "format": "int64"},
		"conditions":         listMap(properties(condition), "type"),
	})
}

func properties(fields object) object { return object{"type": "object", "properties": fields} }

func listMap(items object, keys ...string) object {
	return object{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}
}

// countFields counts the properties at and below a schema.
func countFields(schema object) int {
	fields, _ := schema["properties"].(object)
	n := len(fields)
	for _, below := range fields {
		n += countFields(below.(object))
	}
	if items, ok := schema["items"].(object); ok {
		n += countFields(items)
	}
	return n
}

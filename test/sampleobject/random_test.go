package sampleobject

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// The search ends, and finds an object for nearly all random schemas. Some random schemas accept no object.
func TestObject_RandomSchemas(t *testing.T) {
	const count = 400
	found := 0
	for seed := range uint64(count) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // The same schemas each time.
		schema := randomObject(random, 3)
		definition := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "randoms.nasty.fieldperm.dev"},
			"spec": map[string]any{
				"group": "nasty.fieldperm.dev", "names": map[string]any{"kind": "Random"},
				"versions": []any{map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": schema}}},
			},
		}}
		if _, err := New(runtimeschema.GroupVersionKind{Group: "nasty.fieldperm.dev", Version: "v1", Kind: "Random"}, definition); err == nil {
			found++
		}
	}
	if found < count*8/10 {
		t.Errorf("objects for %d of %d schemas", found, count)
	}
}

func randomObject(random *rand.Rand, depth int) map[string]any {
	properties, required := map[string]any{}, []any{}
	for number := range 1 + random.IntN(4) {
		name := fmt.Sprintf("p%d", number)
		properties[name] = randomSchema(random, depth-1)
		if random.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	switch random.IntN(6) {
	case 0:
		out["oneOf"] = []any{map[string]any{"required": []any{"p0"}}, map[string]any{"not": map[string]any{"required": []any{"p0"}}}}
	case 1:
		out["anyOf"] = []any{map[string]any{"required": []any{"absent"}}, map[string]any{"required": []any{"p0"}}}
	case 2:
		out["minProperties"] = int64(1)
	case 3:
		out["x-kubernetes-validations"] = []any{map[string]any{"rule": "has(self.p0)"}}
	}
	return out
}

func randomSchema(random *rand.Rand, depth int) map[string]any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	low := int64(random.IntN(200) - 100)
	switch random.IntN(kinds) {
	case 0:
		return map[string]any{"type": "integer", "minimum": low, "maximum": low + int64(random.IntN(50)), "multipleOf": int64(1 + random.IntN(3))}
	case 1:
		return map[string]any{"type": "number", "minimum": low, "exclusiveMinimum": random.IntN(2) == 0}
	case 2:
		patterns := []any{`^[a-z]+$`, `^(a|bc){2,5}$`, `^\d+(\.\d+)?$`, `x`, `^[A-Z][^ ]*$`, `^(|none)$`}
		return map[string]any{"type": "string", "pattern": patterns[random.IntN(len(patterns))], "minLength": int64(random.IntN(5))}
	case 3:
		return map[string]any{"type": "string", "enum": []any{"x", "y", "z"}[:1+random.IntN(3)]}
	case 4:
		return map[string]any{"x-kubernetes-int-or-string": true}
	case 5:
		kind := []any{"set", "atomic"}[random.IntN(2)]
		return map[string]any{"type": "array", "minItems": int64(random.IntN(3)), "items": randomSchema(random, 0), "x-kubernetes-list-type": kind}
	default:
		return randomObject(random, depth)
	}
}

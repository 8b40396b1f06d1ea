package fieldperm

import (
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/schematest"
)

// D7: an API server stores the generation of a new ConfigMap as the client sends it, and keeps it in updates.
func TestD7_TheGenerationOfANewObjectIsTheClients(t *testing.T) {
	s := schematest.Schema(t)
	k, err := s.Kind(runtimeschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		t.Fatal(err)
	}
	object := func(generation string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","generation":` + generation + `},"data":{"a":"b"}}`)
	}
	for generation, want := range map[string]int{"77": 3, "-1": 3, "1.5": 3, `"x"`: 3, "1": 2, "1.0": 2, "0": 2, "null": 2} {
		if got, err := Diff(t.Context(), nil, object(generation), k, nil); err != nil || len(got) != want {
			t.Errorf("a new object with generation %s: %d changes, %v; want %d", generation, len(got), err, want)
		}
	}
}

package sample

import (
	"path/filepath"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCache(t *testing.T) {
	var cache Cache
	definition, gvk := readDefinition(t, filepath.Join("testdata", "possible", "single.yaml"))
	definition.SetUID("a")
	definition.SetGeneration(1)
	name := func() string {
		t.Helper()
		got, err := cache.Object(gvk, definition)
		if err != nil {
			t.Fatal(err)
		}
		metadata := got["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		metadata["name"] = "spoilt"
		return name
	}
	if first, second := name(), name(); first != "only" || second != "only" {
		t.Errorf("%q, %q; want the same object twice", first, second)
	}

	other, _ := readDefinition(t, filepath.Join("testdata", "possible", "shape.yaml"))
	definition.Object["spec"].(map[string]any)["versions"] = other.Object["spec"].(map[string]any)["versions"]
	if got := name(); got != "only" {
		t.Errorf("%q: the same generation was searched again", got)
	}
	definition.SetGeneration(2)
	if got := name(); got != "n-a" {
		t.Errorf("%q; want the next generation's", got)
	}

	if _, err := cache.Object(runtimeschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, nil); err != nil {
		t.Error(err)
	}
}

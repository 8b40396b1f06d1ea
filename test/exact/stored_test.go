package exact

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/load"
)

const thing = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.g.example"},
	"spec": {"group": "g.example", "scope": "Namespaced", "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"spec": {"type": "object", "properties": {"policy": {"type": "integer", "default": 1}, "size": {"type": "integer"}}}}}}}]}}`

// A stored new object that consists of defaults only has the same charge as in a webhook (C5).
func TestC5_StoredObjectsOfNothingButDefaults(t *testing.T) {
	docs, errs := load.CRD("things", []byte(thing))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s, errs := NewStored(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	identity := []string{".apiVersion", ".kind", ".metadata.name", ".metadata.uid"}
	s.Free = func(c Change) bool { return c.Default || slices.Contains(identity, c.Path) }
	gvk := runtimeschema.GroupVersionKind{Group: "g.example", Version: "v1", Kind: "Thing"}
	for spec, want := range map[string]string{
		``:                              `created .`,
		`,"spec":{"policy":1}`:          `added .spec, created .`,
		`,"spec":{}`:                    `added .spec, created .`,
		`,"spec":{"policy":1,"size":3}`: `added .spec.size, created .`,
		`,"spec":{"policy":2}`:          `added .spec.policy, created .`,
	} {
		charges, err := s.Charges(gvk, nil, []byte(`{"apiVersion":"g.example/v1","kind":"Thing","metadata":{"name":"x","uid":"1"}`+spec+`}`), nil, "g.example/v1")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range charges {
			got = append(got, c.Operation+" "+c.Path)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}

package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

var harbour = runtimeschema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Harbour"}

// harbours returns a document with a kind, the keys of the fields of its specification, and the paths of resources, each with the kind that is
// written there.
func harbours(fields string, paths map[string]string) []byte {
	var served []string
	for path, kind := range paths {
		group, name, _ := strings.Cut(kind, "/")
		served = append(served, fmt.Sprintf(`%q: {"put": {"responses": {}, "x-kubernetes-group-version-kind": {"group": %q, "version": "v1", "kind": %q}}}`, "/apis/sea.example.com/v1/"+path, group, name))
	}
	return []byte(`{"openapi": "3.0.0", "info": {"title": "sea", "version": "1"}, "paths": {` + strings.Join(served, ",") + `}, "components": {"schemas": {
"meta.ObjectMeta": {"type": "object"},
"HarbourSpec": {"type": "object", "properties": {` + fields + `}},
"Harbour": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "sea.example.com", "version": "v1", "kind": "Harbour"}], "properties": {
  "metadata": {"$ref": "#/components/schemas/meta.ObjectMeta"}, "spec": {"default": {}, "allOf": [{"$ref": "#/components/schemas/HarbourSpec"}]}}}}}}`)
}

// TestW2_TheResourceOfAKindIsThatOfItsPath: a webhook rule with a guessed name would never match.
func TestW2_TheResourceOfAKindIsThatOfItsPath(t *testing.T) {
	const kind = "sea.example.com/Harbour"
	for paths, want := range map[string]string{
		"harbours/{name}":                            "",
		"ports/{name}":                               "ports",
		"namespaces/{namespace}/ports/{name}":        "ports",
		"namespaces/{namespace}/ports":               "ports",
		"namespaces/{namespace}/ports/{name}/status": "", // A subresource says nothing of the resource.
	} {
		topology, err := OpenAPIV3("sea", harbours("", map[string]string{paths: kind}))
		if err != nil || topology.Plurals[harbour] != want {
			t.Errorf("%s: resource %q, want %q (%v)", paths, topology.Plurals[harbour], want, err)
		}
	}
	_, err := OpenAPIV3("sea", harbours("", map[string]string{"ports/{name}": kind, "harbours/{name}": kind}))
	if err == nil || !strings.Contains(err.Error(), `kind "Harbour" is that of the resources "harbours" and "ports"`) {
		t.Errorf("two resources: %v", err)
	}
}

// TestC2_TheFieldOfAScale: what the subresource scale writes has the barriers of that field, so the field must be known.
func TestC2_TheFieldOfAScale(t *testing.T) {
	const integer = `{"type": "integer"}`
	scale := map[string]string{"harbours/{name}": "sea.example.com/Harbour", "harbours/{name}/scale": "autoscaling/Scale"}
	marked := func(verb string) string {
		return `{"type": "integer", "x-kubernetes-permission-verb": "` + verb + `"}`
	}
	for _, test := range []struct {
		name, fields string
		paths        map[string]string
		want         string
		unknown      bool
	}{
		{"no scale", `"cranes": ` + integer, map[string]string{"harbours/{name}": "sea.example.com/Harbour"}, "", false},
		{"replicas", `"replicas": ` + integer, scale, ".spec.replicas", false},
		{"the field with the verb scale", `"replicas": ` + integer + `, "cranes": ` + marked("scale"), scale, ".spec.cranes", false},
		{"another verb", `"cranes": ` + marked("example.com/cranes"), scale, "", true},
		{"two fields with the verb", `"replicas": ` + marked("scale") + `, "cranes": ` + marked("scale"), scale, "", true},
		{"no such field", `"cranes": ` + integer, scale, "", true},
	} {
		topology, err := OpenAPIV3("sea", harbours(test.fields, test.paths))
		if err != nil || topology.Replicas[harbour] != test.want || topology.ReplicasUnknown[harbour] != test.unknown {
			t.Errorf("%s: replicas %q, unknown %t, want %q and %t (%v)", test.name, topology.Replicas[harbour], topology.ReplicasUnknown[harbour], test.want, test.unknown, err)
		}
	}
}

// TestC2_AScaleOfAnUnknownFieldPassesEveryBarrier: any field may be the one that the subresource writes.
func TestC2_AScaleOfAnUnknownFieldPassesEveryBarrier(t *testing.T) {
	scale := map[string]string{"ports/{name}": "sea.example.com/Harbour", "ports/{name}/scale": "autoscaling/Scale"}
	const barred = `{"type": "integer", "x-kubernetes-permission-verb": "example.com/cranes", "x-kubernetes-permission-excluded": true}`
	for fields, want := range map[string][]string{
		`"cranes": ` + barred: {"granular:example.com/cranes"},
		`"cranes": ` + barred + `, "berths": {"type": "integer", "x-kubernetes-permission-verb": "scale"}`: nil,
	} {
		topology, err := OpenAPIV3("sea", harbours(fields, scale))
		if err != nil {
			t.Fatal(err)
		}
		docs, errs := builtInDocuments()
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		s, errs := compile.Compile(docs.Append(compile.Documents{Topologies: []compile.Topology{topology}}))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		body, err := s.KindFor(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, schema.ResourceRef{Group: "sea.example.com", Version: "v1", Resource: "ports", Subresource: "scale"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range body.HiddenBarriers(nil) {
			got = append(got, v.String())
		}
		if !slices.Equal(got, want) || body.Lossy() {
			t.Errorf("%s: a Scale must pass %v, want %v", fields, got, want)
		}
	}
}

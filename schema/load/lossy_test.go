package load

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// twoVersions has spec.secret in v1 only; more goes into the spec of the definition, guard behind the secret.
func twoVersions(more, guard, annotation string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com, annotations: {` + annotation + `}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
` + more + `
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, secret: {type: string` + guard + `}}}}}}
  - name: v2
    served: true
    storage: false
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`
}

func compileBox(t *testing.T, definition string) *schema.Schema {
	t.Helper()
	docs, errs := Decode("box.yaml", []byte(definition))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	builtIn, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	s, errs := schema.Compile(schema.Documents{Topologies: []schema.Topology{builtIn}}.Append(docs))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// TestC3_AVersionThatPrunesTakesTheVerbOfAll: a write through it loses what it does not show.
func TestC3_AVersionThatPrunesTakesTheVerbOfAll(t *testing.T) {
	s := compileBox(t, twoVersions("", "", ""))
	scale := runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	for _, c := range []struct {
		name  string
		kind  runtimeschema.GroupVersionKind
		ref   schema.ResourceRef
		lossy bool
	}{
		{"the version that has all", runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"}, schema.ResourceRef{}, false},
		{"the version that prunes", runtimeschema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Box"}, schema.ResourceRef{}, true},
		{"the scale of the one", scale, schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "boxes", Subresource: "scale"}, false},
		{"the scale of the other", scale, schema.ResourceRef{Group: "example.com", Version: "v2", Resource: "boxes", Subresource: "scale"}, true},
		{"an autoscaler of v1, whose annotations are fields of v2", runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}, schema.ResourceRef{}, true},
		{"an autoscaler of v2", runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, schema.ResourceRef{}, false},
	} {
		k, err := s.KindFor(c.kind, c.ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fieldperm.Diff(t.Context(), []byte(`{"metadata":{"name":"x"}}`), []byte(`{"metadata":{"name":"x"}}`), k, nil)
		if err != nil || (len(got) == 1) != c.lossy {
			t.Errorf("%s: a write of nothing is charged %v, %v; want lossy %v", c.name, got, err, c.lossy)
		}
	}
	if k, _ := compileBox(t, twoVersions("  conversion: {strategy: Webhook}", "", "")).Kind(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Box"}); k == nil || k.Lossy() {
		t.Error("with a conversion webhook nothing is pruned")
	}
}

func TestC2_NoVersionIsAWayAroundABarrier(t *testing.T) {
	const guard = ", x-kubernetes-permission-verb: secret, x-kubernetes-permission-excluded: true"
	for name, c := range map[string]struct{ definition, want string }{
		"a version that prunes what the barrier guards": {twoVersions("", guard, ""), `version "v2" prunes what is at ".spec.secret" of version "v1"`},
		"a version that the annotation does not name":   {twoVersions("  conversion: {strategy: Webhook}", "", `fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.secret","verb":"secret","excluded":true}]}'`), `says nothing of the served version "v2"`},
	} {
		if _, errs := Decode("box.yaml", []byte(c.definition)); len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, errs, c.want)
		}
	}
}

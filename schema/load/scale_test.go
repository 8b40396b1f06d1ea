package load

import (
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// TestC2_ScaleOfACustomResourceHasItsBarrier: names and paths are the definition's own.
func TestC2_ScaleOfACustomResourceHasItsBarrier(t *testing.T) {
	const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: oxen.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ox, plural: oxen, singular: ox, listKind: OxList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.herd.size, statusReplicasPath: .status.size}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              herd:
                type: object
                properties:
                  size: {type: integer, x-kubernetes-permission-verb: herdSize, x-kubernetes-permission-excluded: true}
          status: {type: object, properties: {size: {type: integer}}}
`
	s := compileBox(t, definition)
	k, err := s.KindFor(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, schema.ResourceRef{Group: "example.com", Resource: "oxen", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	permissions := k.Root.Map().Child("spec").Map().Child("replicas").Permissions()
	if len(permissions) != 1 || permissions[0].Base().Name() != "herdSize" || !permissions[0].MayBar() {
		t.Errorf("permissions of the replicas: %v", permissions)
	}
}

package webhooks

import (
	"slices"
	"testing"
)

// lossy is a definition of which only one of two versions has a field behind a barrier.
const lossy = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, a: {type: string, x-kubernetes-permission-verb: example.com/a, x-kubernetes-permission-excluded: true}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// TestA2_RulesOfALossyVersion: a write of any subresource through a lossy version may change a field behind a barrier.
func TestA2_RulesOfALossyVersion(t *testing.T) {
	compiled, _ := compile(t, lossy)
	got := lines(Uncovered(compiled, nil, nil))
	for _, want := range []string{"example.com: widgets", "example.com: widgets/status", "example.com: widgets/scale"} {
		if !slices.Contains(got, want) {
			t.Errorf("rules are %q, want %q among them", got, want)
		}
	}
}

package bench

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Panel has 2,000 fields in 20 groups, each with a verb of its own.
const (
	panelGroups = 20
	panelFields = 100
)

func panelDefinition() string {
	var b strings.Builder
	b.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: panels.example.com}
spec:
  group: example.com
  names: {kind: Panel, listKind: PanelList, plural: panels, singular: panel}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, format: int32, x-kubernetes-permission-verb: scale}
`)
	for g := range panelGroups {
		fmt.Fprintf(&b, "              section%02d:\n                type: object\n                x-kubernetes-permission-verb: example.com/section%02d\n                properties:\n", g, g)
		for f := range panelFields {
			fmt.Fprintf(&b, "                  setting%02d: {type: %s}\n", f, []string{"string", "integer", "boolean"}[f%3])
		}
	}
	return b.String()
}

// panel has a value in every field. Custom resources are encoded in the order of the names.
func panel(replicas int) map[string]any {
	spec := map[string]any{"replicas": replicas}
	for g := range panelGroups {
		section := map[string]any{}
		for f := range panelFields {
			section[fmt.Sprintf("setting%02d", f)] = []any{fmt.Sprintf("value of %d in %d", f, g), f * g, f%2 == 0}[f%3]
		}
		spec[fmt.Sprintf("section%02d", g)] = section
	}
	return custom("Panel", "north", spec)
}

func custom(kind, name string, spec any) map[string]any {
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": kind, "spec": spec,
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "6f1c2a3e-6d1b-4f5e-9a51-0d7f3c9b2e10", "resourceVersion": "184467", "generation": 7,
			"creationTimestamp": madeAt().UTC().Format("2006-01-02T15:04:05Z"),
		},
	}
}

// owning is the custom resource with managedFields.
func owning(object map[string]any, entries []metav1.ManagedFieldsEntry) map[string]any {
	object["metadata"].(map[string]any)["managedFields"] = entries
	return object
}

// A Trial has a field for every kind of hostile input.
const trialDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trials.example.com}
spec:
  group: example.com
  names: {kind: Trial, listKind: TrialList, plural: trials, singular: trial}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              # Whatever one likes: maps are compared key by key, lists as a whole.
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-permission-verb: example.com/free}
              entries:
                type: object
                x-kubernetes-permission-verb: example.com/entries
                x-kubernetes-permission-parameter-source: entry
                additionalProperties:
                  type: string
                  x-kubernetes-permission-verb: example.com/entry
                  x-kubernetes-permission-parameterized-by: entry
              groups:
                type: object
                x-kubernetes-permission-verb: example.com/groups
                additionalProperties:
                  type: object
                  additionalProperties: {type: string}
              # A barrier with a condition on each value.
              sealed:
                type: object
                x-kubernetes-permission-verb: example.com/sealed
                additionalProperties:
                  type: string
                  x-kubernetes-permission-verb: example.com/seal
                  x-kubernetes-permission-excluded-when: "self == 'true'"
              numbers:
                type: array
                x-kubernetes-list-type: atomic
                x-kubernetes-permission-verb: example.com/numbers
                items: {type: integer}
              members:
                type: array
                x-kubernetes-list-type: set
                x-kubernetes-permission-verb: example.com/members
                items: {type: string}
              items:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                x-kubernetes-permission-verb: example.com/items
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    note: {type: string}
                    options: {type: object, x-kubernetes-preserve-unknown-fields: true}
              # Atomic, with a barrier inside.
              stages:
                type: array
                x-kubernetes-list-type: atomic
                x-kubernetes-permission-verb: example.com/stages
                items:
                  type: object
                  properties:
                    name: {type: string}
                    privileged: {type: boolean, x-kubernetes-permission-verb: example.com/privilege, x-kubernetes-permission-excluded: true}
                    options: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

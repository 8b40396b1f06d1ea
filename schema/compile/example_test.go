package compile_test

import (
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
)

// This example compiles a CustomResourceDefinition whose author gave verbs to two fields.
func ExampleCompile() {
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
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
              color: {type: string, x-kubernetes-permission-verb: example.com/color}
              locked:
                type: boolean
                x-kubernetes-permission-verb: example.com/lock
                x-kubernetes-permission-excluded: true
`
	documents, errs := load.CRD("widgets.yaml", []byte(definition))
	compiled, faults := compile.Compile(documents)
	for _, err := range append(errs, faults...) {
		fmt.Println(err)
	}
	kind, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	if err != nil {
		fmt.Println(err)
		return
	}
	kind.Walk(func(path fieldpath.Pattern, node *schema.Node) {
		for _, permission := range node.Permissions() {
			fmt.Printf("%q %s barrier=%t\n", path, permission.Base(), permission.MayBar())
		}
	})
	// Output:
	// "" granular:* barrier=false
	// ".spec.color" granular:example.com/color barrier=false
	// ".spec.locked" granular:example.com/lock barrier=true
}

package generators

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestC2_PermissionsOfASplitDefinitionLiftNoBarrierOfAnAdministrator: the objects of a cluster count in the order of their names.
func TestC2_PermissionsOfASplitDefinitionLiftNoBarrierOfAnAdministrator(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.com}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {plural: gadgets, singular: gadget, kind: Gadget}\n" +
		"  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n")
	for i := range 1200 {
		fmt.Fprintf(&text, "          field%d: {type: string, x-kubernetes-permission-verb: example.com/value, x-kubernetes-permission-excluded-when: \"self == '%s'\"}\n", i, strings.Repeat("a", 200))
	}
	converted, errs := Convert("gadgets.yaml", []byte(text.String()))
	if len(errs) > 0 || converted.Permissions == nil {
		t.Fatal(errs, "the definition is not split")
	}
	names, err := objectNames(converted.Permissions.Data)
	if err != nil || len(names) < 2 {
		t.Fatalf("%q: %v", names, err)
	}
	for _, name := range names {
		if faults := validation.NameIsDNSSubdomain(name, false); len(faults) > 0 {
			t.Errorf("%q: %q", name, faults)
		}
	}
	administrator := "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: \"00\"}\nspec: {group: example.com, kind: Gadget, permissions: [{path: .field0, verb: example.org/mine, excluded: true}, {path: .field2, verb: example.org/other, excludedWhen: \"self == 'b'\"}]}\n"
	objects := strings.Split(string(converted.Permissions.Data), "---\n")[1:]
	objects = append(objects, administrator)
	slices.SortFunc(objects, func(a, b string) int { return strings.Compare(nameOf(t, a), nameOf(t, b)) })
	documents, errs := load.Decode("gadgets.yaml", converted.CRD.Data)
	for _, object := range objects {
		more, faults := load.Decode(nameOf(t, object), []byte(object))
		documents, errs = documents.Append(more), append(errs, faults...)
	}
	documents.Permissions = append(schematest.Documents(t).Permissions, documents.Permissions...)
	compiled, faults := compile.Compile(documents)
	if errs = append(errs, faults...); len(errs) > 0 {
		t.Fatal(errs)
	}
	found := map[string]string{}
	for _, k := range compiled.Kinds() {
		if k.Kind == "Gadget" {
			k.Guarded(2000, func(at fieldpath.Pattern, n *schema.Node) {
				for _, p := range n.Permissions() {
					found[at.String()] += fmt.Sprintf("%s %t ", p.Base(), p.Excluded())
				}
			})
		}
	}
	for path, barrier := range map[string]string{".field0": "granular:example.org/mine true ", ".field1": "granular:example.com/value false ", ".field2": "granular:example.org/other false "} {
		if !strings.Contains(found[path], barrier) || !strings.Contains(found[path], "granular:example.com/value false ") {
			t.Errorf("%s: %s", path, found[path])
		}
	}
}

func nameOf(t *testing.T, object string) string {
	t.Helper()
	names, err := objectNames([]byte(object))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

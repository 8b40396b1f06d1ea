package sources

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// While a definition is faulty, the rules for barriers of its kind stay. They are found by its resource, because Kubernetes' guess
// of a plural is wrong for many kinds ("gatewaies").
func TestW2_AFaultyDefinitionStillNamesItsResource(t *testing.T) {
	definition := widget("1", 1, "{")
	if err := unstructured.SetNestedField(definition.Object, "widgetry", "spec", "names", "plural"); err != nil {
		t.Fatal(err)
	}
	l := mustLive(t, &world{definitions: []*unstructured.Unstructured{definition}})
	mustRefresh(t, l)
	if kind := kindWidget().GroupKind(); !l.Unknown()[kind] {
		t.Fatal("the definition has no fault")
	}
	found := ""
	for _, topology := range l.Documents().Topologies {
		for gvk, plural := range topology.Plurals {
			if gvk.GroupKind() == kindWidget().GroupKind() {
				found = plural
			}
		}
	}
	if found != "widgetry" {
		t.Errorf("its resource is %q", found)
	}
	if _, err := l.Schema().Kind(kindWidget()); err == nil {
		t.Error("the kind is known")
	}
}

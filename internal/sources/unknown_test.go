package sources

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/compile"
)

// TestA2_AFaultyDefinitionLeavesItsKindUnknown: a kind of a removed built-in API that a definition serves now must not be compiled
// from the former built-in kind.
func TestA2_AFaultyDefinitionLeavesItsKindUnknown(t *testing.T) {
	ingress := runtimeschema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "Ingress"}
	other := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	d := definitions{known: map[string]*definition{
		"ingresses.extensions": {kind: ingress.GroupKind(), faults: []error{errors.New("claims a built-in kind")}},
		"good.example.com":     {kind: runtimeschema.GroupKind{Group: "apps", Kind: "Deployment"}, faults: []error{errors.New("now faulty")}, good: &compile.Documents{}},
	}}
	before := []compile.Topology{{Kinds: map[runtimeschema.GroupVersionKind]string{ingress: "ingress", other: "deployment"}}}
	after := without(before, d.unknown())
	if _, known := after[0].Kinds[ingress]; known {
		t.Error("the kind of a faulty definition is known")
	}
	if _, known := after[0].Kinds[other]; !known {
		t.Error("the kind of a definition that was good once is not")
	}
	if len(before[0].Kinds) != 2 {
		t.Error("the topology that was handed in has changed")
	}
}

// TestLastGood_AnObjectMadeAnewHasNone: an object that is deleted and created again with the same name is another object.
func TestLastGood_AnObjectMadeAnewHasNone(t *testing.T) {
	var list []*unstructured.Unstructured
	o := objects{known: map[objectKey]*object{}, list: func(context.Context) ([]*unstructured.Unstructured, error) { return list, nil }}
	read := func(one *unstructured.Unstructured) *object {
		t.Helper()
		list = []*unstructured.Unstructured{one}
		if _, err := o.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		return o.known[objectKey{"UncoveredPermissionSet", "set"}]
	}
	read(set("1", 1, `{uncoveredPermissions: ["granular:scale"]}`))
	o.settle("UncoveredPermissionSet", nil)
	if again := read(set("1", 2, `{uncoveredPermissions: ["granular:image"]}`)); again.good == nil || again.goodGeneration != 1 {
		t.Errorf("an edit: %+v", again)
	}
	if anew := read(set("2", 1, `{uncoveredPermissions: ["granular:image"]}`)); anew.good != nil {
		t.Errorf("made anew: %+v", anew)
	}
}

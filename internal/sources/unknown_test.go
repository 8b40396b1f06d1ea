package sources

import (
	"errors"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// TestA2_AFaultyDefinitionLeavesItsKindUnknown: a removed built-in API that a definition serves now
// must not be compiled from what the built-in kind once was.
func TestA2_AFaultyDefinitionLeavesItsKindUnknown(t *testing.T) {
	ingress := runtimeschema.GroupVersionKind{Group: "extensions", Version: "v1beta1", Kind: "Ingress"}
	other := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	d := definitions{known: map[string]*definition{
		"ingresses.extensions": {kind: ingress.GroupKind(), faults: []error{errors.New("claims a built-in kind")}},
		"good.example.com":     {kind: runtimeschema.GroupKind{Group: "apps", Kind: "Deployment"}, faults: []error{errors.New("now faulty")}, good: &schema.Documents{}},
	}}
	before := []schema.Topology{{Kinds: map[runtimeschema.GroupVersionKind]string{ingress: "ingress", other: "deployment"}}}
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

package sources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/internal/allowlist"
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

// TestA2_AVersionThatOnlyTheAPIServerKnows: servers of other minors have versions built in that client-go does not have. Their kinds are known,
// unless a definition claims them: the API server's label that the group is built in can be written by users.
func TestA2_AVersionThatOnlyTheAPIServerKnows(t *testing.T) {
	gone := runtimeschema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1alpha9"}
	workload, class := gone.WithKind("Workload"), gone.WithKind("Widget")
	published := strings.NewReplacer("example.com", gone.Group, `"v1"`, `"`+gone.Version+`"`).Replace(thingDocument)
	claim := func(kind string) *unstructured.Unstructured {
		u := widget("1", 1, entry(".spec.size", sizeIsUncovered))
		for _, set := range []struct{ value, field string }{{gone.Group, "group"}, {kind, "kind"}} {
			at := []string{"spec", set.field}
			if set.field == "kind" {
				at = []string{"spec", "names", "kind"}
			}
			if err := unstructured.SetNestedField(u.Object, set.value, at...); err != nil {
				t.Fatal(err)
			}
		}
		return u
	}
	w := &world{}
	w.paths = map[string]openapi.GroupVersionWithContext{"apis/" + gone.String(): document{world: w, url: "/x?hash=1", raw: published}}
	l := mustLive(t, w)
	for _, step := range []struct {
		name     string
		services allowlist.Services
		claims   []*unstructured.Unstructured
		known    bool
	}{
		{name: "nothing says that it is built in"},
		{"built in", allowlist.Services{Own: []string{gone.Group}}, nil, true},
		{"registered for a definition", allowlist.Services{Own: []string{gone.Group}, Defined: []runtimeschema.GroupVersion{gone}}, nil, false},
		{"built in again", allowlist.Services{Own: []string{gone.Group}}, nil, true},
		{"a definition claims another kind", allowlist.Services{Own: []string{gone.Group}}, []*unstructured.Unstructured{claim("Gadget")}, true},
		{"a definition claims the kind", allowlist.Services{Own: []string{gone.Group}}, []*unstructured.Unstructured{claim("Widget")}, false},
		{"the claim is gone", allowlist.Services{Own: []string{gone.Group}}, nil, true},
	} {
		w.services, w.definitions = step.services, step.claims
		mustRefresh(t, l)
		if _, err := l.Schema().Kind(class); (err == nil) != step.known {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	if _, err := l.Schema().Kind(workload); err == nil {
		t.Error("a kind that the document does not have is known")
	}
}

package load

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// TestSharing_MetadataIsOneTree: there are three trees of metadata, and they differ in a few nodes only.
func TestSharing_MetadataIsOneTree(t *testing.T) {
	builtin, errs := builtInDocuments()
	noErrors(t, errs)
	var custom []compile.Documents
	for i, raw := range customDefinitions(t, 2) {
		docs, errs := CRD(fmt.Sprint(i), raw)
		noErrors(t, errs)
		custom = append(custom, docs)
	}
	compiled, errs := compile.Compile(builtin.Append(custom...))
	noErrors(t, errs)
	ofCustom := map[runtimeschema.GroupVersionKind]bool{}
	for _, docs := range custom {
		for gvk := range docs.Topologies[0].Kinds {
			ofCustom[gvk] = true
		}
	}
	own := map[runtimeschema.GroupKind]bool{}
	for _, d := range builtin.Permissions {
		for _, e := range d.Entries {
			if d.Kind != "*" && strings.HasPrefix(e.Path, ".metadata.") {
				own[runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}] = true
			}
		}
	}
	metadata := map[string]*schema.Node{}
	for _, k := range compiled.Kinds() {
		class := "built in"
		switch {
		case ofCustom[k.GroupVersionKind]:
			// Built-in kinds declare {} as the default of their metadata; definitions cannot declare it.
			class = "custom"
		case k.GroupKind() == apiextensionsv1.Kind("CustomResourceDefinition"):
			// The annotation with the permission verbs is a barrier.
			class = "definition"
		case own[k.GroupKind()]:
			// The catalogue singles out labels or annotations of these kinds.
			continue
		}
		n := k.Root.Map().Child("metadata")
		if first := metadata[class]; first != nil && n != first {
			t.Errorf("%s: the metadata are a tree of their own", k.GroupVersionKind)
		}
		metadata[class] = n
	}
	if len(metadata) != 3 || len(ofCustom) != 2 {
		t.Fatalf("classes %v, custom kinds %v", metadata, ofCustom)
	}
	for _, class := range []string{"custom", "definition"} {
		if metadata[class] == metadata["built in"] {
			t.Errorf("%s: the metadata are those of the built-in kinds", class)
		}
		for _, field := range []string{"labels", "finalizers", "managedFields", "ownerReferences", "resourceVersion"} {
			if metadata[class].Map().Child(field) != metadata["built in"].Map().Child(field) {
				t.Errorf("%s: %s is a node of its own", class, field)
			}
		}
	}
	if own, other := metadata["definition"], metadata["built in"]; !own.MayBarWithin() || !own.Map().Child("annotations").MayBarWithin() || other.MayBarWithin() {
		t.Error("the barrier on the annotation of definitions is not where it should be")
	}
}

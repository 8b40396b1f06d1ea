package sources

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// After a restore of etcd from a backup, an object may get a generation a second time, with another content.

func TestRestored_ObjectsWithTheSameGeneration(t *testing.T) {
	c := &cluster{}
	l := c.live(t)
	c.is(t, l, deployments("1", 2, "{path: .spec.paused, verb: example.com/other}"))
	if got := barred(t, l); got != "" {
		t.Fatalf("barrier %q", got)
	}
	c.is(t, l, deployments("1", 2, pausedIsBarred))
	if got := barred(t, l); got != "granular:example.com/pause" {
		t.Errorf("barrier %q: the earlier content of the generation is in force", got)
	}
	c.is(t, l, deployments("1", 3, pausedIsBarred))
	if got := stateOf(t, l, "deployments").Generation; got != 3 {
		t.Errorf("generation %d, want 3, although its content is that of 2", got)
	}
}

func TestRestored_DefinitionsWithTheSameGeneration(t *testing.T) {
	other := widget("1", 2, entry(".spec.size", sizeIsUncovered))
	versions, _, err := unstructured.NestedSlice(other.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	of := versions[0].(map[string]any)
	if err := unstructured.SetNestedField(of, map[string]any{"type": "string"}, "schema", "openAPIV3Schema", "properties", "spec", "properties", "colour"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(other.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	w := &world{definitions: []*unstructured.Unstructured{widget("1", 2, entry(".spec.size", sizeIsUncovered))}}
	l := mustLive(t, w)
	mustRefresh(t, l)
	before := l.Schema()
	w.definitions = []*unstructured.Unstructured{widget("1", 2, entry(".spec.size", sizeIsUncovered))}
	mustRefresh(t, l)
	if l.Schema() != before {
		t.Error("an equal definition was compiled again")
	}
	w.definitions = []*unstructured.Unstructured{other}
	mustRefresh(t, l)
	k, err := l.Schema().Kind(kindWidget())
	if err != nil {
		t.Fatal(err)
	}
	if k.Root.Map().Child("spec").Map().Child("colour") == nil || l.Schema() == before {
		t.Error("the earlier content of the generation is in force")
	}
}

func TestRestored_ChangesOfTheSameGenerationAreNoticed(t *testing.T) {
	if sameSpecification(set("s", 2, `{uncoveredPermissions: ["granular:image"]}`), set("s", 2, `{uncoveredPermissions: ["granular:scale"]}`)) {
		t.Error("another content is not noticed")
	}
	if !sameSpecification(set("s", 2, `{uncoveredPermissions: ["granular:image"]}`), set("s", 2, `{uncoveredPermissions: ["granular:image"]}`)) {
		t.Error("an equal object counts as changed")
	}
}

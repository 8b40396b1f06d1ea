package sampleobject

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// A5: every sample has only fields of its kind, in all versions.
func TestA5_EveryKindDecodesStrictly(t *testing.T) {
	known, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	// Kubernetes 1.37 no longer serves these versions, and their fields differ.
	notServed := []string{
		"networking.k8s.io/v1beta1/Ingress", "node.k8s.io/v1alpha1/RuntimeClass",
		"flowcontrol.apiserver.k8s.io/v1beta1/PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1beta2/PriorityLevelConfiguration",
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for kind, entry := range known {
		if entry.Impossible != "" {
			continue
		}
		versions := 0
		for gvk := range scheme.Scheme.AllKnownTypes() {
			if gvk.GroupKind() != kind || strings.HasPrefix(gvk.Version, "__") || slices.Contains(notServed, gvk.GroupVersion().String()+"/"+gvk.Kind) {
				continue
			}
			versions++
			encoded, err := json.Marshal(object(t, gvk, nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := strict.Decode(encoded, nil, nil); err != nil {
				t.Errorf("%s: %v", gvk, err)
			}
		}
		switch kind.Group {
		case "apiextensions.k8s.io", "apiregistration.k8s.io":
			// client-go has no types for these. The real API server decodes them strictly.
		default:
			if versions == 0 {
				t.Errorf("kinds.yaml has %q, which client-go does not know", kind)
			}
		}
	}
}

func TestObject_IsTheCallersOwn(t *testing.T) {
	gvk := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	first := object(t, gvk, nil)
	want := runtime.DeepCopyJSON(first)
	Place(first, "a", "b")
	first["spec"].(map[string]any)["template"] = nil
	if got := object(t, gvk, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("the second object is %v; want %v", got, want)
	}
	for _, file := range definitions(t, "possible") {
		definition, gvk := readDefinition(t, file)
		spoil(object(t, gvk, definition))
		object(t, gvk, definition)
	}
}

// spoil changes every map and list. If two places share one, the recursion never ends or the second object differs.
func spoil(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			spoil(inner)
			delete(v, key)
		}
	case []any:
		for i := range v {
			spoil(v[i])
			v[i] = nil
		}
	}
}

func TestObject_UnknownKind(t *testing.T) {
	_, err := New(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, nil)
	if err == nil || !strings.Contains(err.Error(), `sample of example.com/v1, Kind=Widget: the kind is not known`) {
		t.Error(err)
	}
}

func TestObject_DefinitionOfAnotherKindOrVersion(t *testing.T) {
	definition, gvk := readDefinition(t, filepath.Join("testdata", "possible", "bound.yaml"))
	for _, wrong := range []runtimeschema.GroupVersionKind{
		{Group: gvk.Group, Version: "v2", Kind: gvk.Kind}, {Group: gvk.Group, Version: gvk.Version, Kind: "Other"}, {Group: "other.dev", Version: gvk.Version, Kind: gvk.Kind},
	} {
		if got, err := New(wrong, definition); err == nil {
			t.Errorf("%s: %v; want an error", wrong, got)
		}
	}
}

func TestDecodeKinds_Refuses(t *testing.T) {
	for content, want := range map[string]string{
		"group: a\nkind: B\nobject: {}\nobjekt: {}":                         "objekt",
		"group: a\nkind: B\nobject: {}\n---\ngroup: a\nkind: B\nobject: {}": "twice",
		"group: a\nobject: {}":                                              "set kind",
		"group: a\nkind: B":                                                 "one of object and impossible",
		"group: a\nkind: B\nobject: {}\nimpossible: because":                "one of object and impossible",
	} {
		if _, err := decodeKinds([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", content, err, want)
		}
	}
}

func TestPlace(t *testing.T) {
	for kind, name := range map[runtimeschema.GroupVersionKind]string{
		{Version: "v1", Kind: "Event"}:                                 "canary",
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"}:         "canary",
		{Group: "networking.k8s.io", Version: "v1", Kind: "IPAddress"}: "192.0.2.1",
	} {
		got := object(t, kind, nil)
		Place(got, "canary", "here")
		metadata := got["metadata"].(map[string]any)
		if metadata["name"] != name || metadata["namespace"] != "here" {
			t.Errorf("%s: metadata is %v", kind, metadata)
		}
		encoded, err := json.Marshal(got)
		if err != nil || strings.Contains(string(encoded), namespaceMark) {
			t.Errorf("%s: %s, %v", kind, encoded, err)
		}
		if kind.Kind == "Event" && strings.Count(string(encoded), `"here"`) != 2 {
			t.Errorf("%s: %s", kind, encoded)
		}
	}
}

func object(t testing.TB, gvk runtimeschema.GroupVersionKind, definition *unstructured.Unstructured) map[string]any {
	t.Helper()
	got, err := New(gvk, definition)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// definitions returns the files of a directory in testdata.
func definitions(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %q, %v", len(files), dir, err)
	}
	return files
}

func readDefinition(t testing.TB, file string) (*unstructured.Unstructured, runtimeschema.GroupVersionKind) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := yaml.YAMLToJSON(content)
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON(encoded); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	version, _, _ := unstructured.NestedString(versions[0].(map[string]any), "name")
	return definition, runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

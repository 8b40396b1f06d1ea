package tighten

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// offline returns the schemas of the built-in kinds.
func offline(t testing.TB) func(apiVersion, kind string) (*schema.Kind, error) {
	t.Helper()
	compiled := schematest.Schema(t)
	return func(apiVersion, kind string) (*schema.Kind, error) {
		return compiled.Kind(runtimeschema.FromAPIVersionAndKind(apiVersion, kind))
	}
}

func deployment(name string, entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ManagedFields: entries}}
}

func entryOf(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
}

const deploymentFields = `{"f:metadata":{"f:labels":{"f:app.example.com/tier":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`

func TestHints_AreTheVerbsOfOwnedFields(t *testing.T) {
	h := &Hints{Managers: []string{"operator"}, Kind: offline(t)}
	must(t, h.Add(t.Context(), "Deployment", Resource{"apps", "deployments"}, deployment("web",
		entryOf("operator", "", deploymentFields),
		entryOf("operator", "status", `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{"f:status":{}}}}}`),
		entryOf("kubectl", "", `{"f:spec":{"f:paused":{}}}`),
		entryOf("operator", "", `{"x":{}}`))))
	got := map[string][]string{}
	for r, w := range h.Found.Resources {
		got[r.String()] = slices.Sorted(maps.Keys(w.Verbs))
	}
	want := map[string][]string{
		"deployments.apps":        {"granular", "granular:image(web)", "granular:label(app.example.com)", "granular:scale"},
		"deployments/status.apps": {"granular", "granular:condition(Available)"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if h.Objects != 1 || h.Faults != 1 {
		t.Errorf("%d objects, %d faults", h.Objects, h.Faults)
	}
}

// BenchmarkHints reads objects of which every tenth has fields of its own.
func BenchmarkHints(b *testing.B) {
	h := &Hints{Managers: []string{"operator"}, Kind: offline(b)}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		fields := deploymentFields
		if i%10 == 0 {
			fields = fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:example.com/l%d":{}}}}`, i%1000)
		}
		must(b, h.Add(b.Context(), "Deployment", Resource{"apps", "deployments"}, deployment(fmt.Sprintf("web-%d", i), entryOf("operator", "", fields))))
		i++
	}
}

//go:build integration

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/corpus"
)

const clientSideApply = "kubectl-client-side-apply"

// migrate does the same as "kubectl apply --server-side" with an object that "kubectl apply" wrote: every manager that updated the
// annotation becomes a manager that applies, and then the manifest is applied.
func (o *thing) migrate(t *testing.T, manifest string) *corpus.Answer {
	t.Helper()
	expect(t, o.apply(t, o.admin(t), "kubectl", manifest), 200)
	object := &unstructured.Unstructured{Object: o.read(t)}
	annotation := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"))
	names := sets.New[string]()
	for _, e := range csaupgrade.FindFieldsOwners(object.GetManagedFields(), metav1.ManagedFieldsOperationUpdate, annotation) {
		names.Insert(e.Manager)
	}
	must(t, csaupgrade.UpgradeManagedFields(object, names, "kubectl"))
	expect(t, send(t, o.admin(t), http.MethodPut, o.path(), "application/json", object.Object), 200)
	return o.apply(t, o.admin(t), "kubectl", manifest)
}

// TestD8_AnUpdateOfTheKubectlApplyAnnotation: a manager that owns the annotation of "kubectl apply" will become a manager that applies.
// Its next unchanged manifest deletes the fields that it was given by others.
func TestD8_AnUpdateOfTheKubectlApplyAnnotation(t *testing.T) {
	s := start(t)
	grant(t, s, "migrator", rule("", []string{"configmaps"}, "get", "granular", "granular:label(x.io)"))
	thief := wire(t, s, "migrator")
	written := func(t *testing.T, name string) *thing {
		t.Helper()
		o := &thing{s, "v1", "configmaps", "ConfigMap", name}
		remove(t, s, o.resource, o.name)
		content := o.document(t, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}\n"}},"data":{"a":"1"}}`)
		expect(t, send(t, o.admin(t), http.MethodPost, o.collection(), "application/json", content, "fieldManager="+clientSideApply), 201)
		return o
	}
	t.Run("the oldest entries are merged with that of kubectl", func(t *testing.T) {
		o := written(t, "merged")
		expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), merge, fields(t, `{"data":{"guard":"g"}}`), "fieldManager=hook"), 200)
		for i := range 12 {
			body := fields(t, fmt.Sprintf(`{"metadata":{"labels":{"x.io/k%d":"1"}}}`, i))
			// Plain kubectl and three controllers reach ten managers: the API server then merges the oldest, which is free (F3).
			expect(t, send(t, thief, http.MethodPatch, o.path(), merge, body, fmt.Sprintf("fieldManager=m%d", i)), 200)
		}
	})
	t.Run("the annotation, by the name of a manager that owns another field", func(t *testing.T) {
		grant(t, s, "annotator", rule("", []string{"configmaps"}, "get", "granular", "granular:appliedConfiguration"))
		o := written(t, "taken-over")
		expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), merge, fields(t, `{"data":{"guard":"g"}}`), "fieldManager=hook"), 200)
		body := fields(t, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{ }"}}}`)
		refusedFor(t, send(t, wire(t, s, "annotator"), http.MethodPatch, o.path(), merge, body, "fieldManager=hook"), ".data")
		expect(t, send(t, wire(t, s, "annotator"), http.MethodPatch, o.path(), merge, body, "fieldManager=annotator"), 200)
		expect(t, o.migrate(t, `{"data":{"a":"1"}}`), 200)
		if !o.has(t, "data", "guard") {
			t.Error("a holder of the annotation has had data removed")
		}
	})
	t.Run("a label beside fields without an owner, by the name of kubectl", func(t *testing.T) {
		o := written(t, "beside")
		expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), merge, fields(t, `{"metadata":{"labels":{"policy/x":"1"}}}`), "fieldManager=hook"), 200)
		expect(t, o.put(t, o.admin(t), func(object map[string]any) { leave(object, clientSideApply) }), 200)
		send(t, thief, http.MethodPatch, o.path(), merge, fields(t, `{"metadata":{"labels":{"x.io/k":"1"}}}`), "fieldManager="+clientSideApply)
		expect(t, o.migrate(t, `{"data":{"a":"1"}}`), 200)
		if !o.has(t, "metadata", "labels", "policy/x") {
			t.Error("a holder of one label has had another removed")
		}
	})
}

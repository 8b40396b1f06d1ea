//go:build integration

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fluxPatch is PatchReplaceFieldsManagers of github.com/fluxcd/pkg/ssa with the managers of kustomize-controller: entries whose manager BEGINS with
// "kubectl" or "before-first-apply" become part of the entry of kustomize-controller with operation Apply.
func fluxPatch(object map[string]any, name string) {
	u := &unstructured.Unstructured{Object: object}
	var prev *metav1.ManagedFieldsEntry
	var out []metav1.ManagedFieldsEntry
	entries := u.GetManagedFields()
	union := &fieldpath.Set{}
	add := func(e *metav1.ManagedFieldsEntry) {
		s := &fieldpath.Set{}
		raw, _ := e.FieldsV1.MarshalJSON()
		_ = s.FromJSON(strings.NewReader(string(raw)))
		union = union.Union(s)
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Subresource == "" && (e.Manager == name && e.Operation == metav1.ManagedFieldsOperationApply || strings.HasPrefix(e.Manager, "kubectl") ||
			strings.HasPrefix(e.Manager, "before-first-apply") && e.Operation == metav1.ManagedFieldsOperationUpdate):
			add(e)
			if prev == nil || e.Manager == name {
				prev = e
			}
		default:
			out = append(out, *e)
		}
	}
	if prev != nil {
		merged := *prev
		merged.Manager, merged.Operation = name, metav1.ManagedFieldsOperationApply
		raw, _ := union.ToJSON()
		merged.FieldsV1 = &metav1.FieldsV1{}
		_ = json.Unmarshal(raw, merged.FieldsV1)
		out = append(out, merged)
	}
	u.SetManagedFields(out)
}

// D8: Flux takes over every manager whose name begins with kubectl, such as kubectl-annotate. So a holder of one annotation makes its next
// reconciliation remove annotations that no manager owns.
func TestD8_FluxTakesOverEveryKubectl(t *testing.T) {
	s := start(t)
	grant(t, s, "annotates", rule("", []string{"configmaps"}, "get", "granular", "granular:annotation(x.io)"))
	for _, manager := range []string{"helm", "kubectl-annotate", "kubectl-patch", "kubectl-edit", "kubectl"} {
		t.Run(manager, func(t *testing.T) {
			o := &thing{s, "v1", "configmaps", "ConfigMap", "flux-" + manager}
			remove(t, s, o.resource, o.name)
			const manifest = `{"data":{"a":"1"}}`
			expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), "application/apply-patch+yaml", o.document(t, manifest), "fieldManager=kustomize-controller", "force=true"), 201)
			// What a mutating webhook writes has no owner.
			expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), merge, fields(t, `{"metadata":{"annotations":{"policy.io/approved":"true"}}}`), "fieldManager=hook"), 200)
			expect(t, o.put(t, o.admin(t), func(object map[string]any) { leave(object, "kustomize-controller") }), 200)
			before, _ := json.Marshal(o.read(t))
			answer := send(t, wire(t, s, "annotates"), http.MethodPatch, o.path(), merge, fields(t, `{"metadata":{"annotations":{"x.io/k":"1"}}}`), "fieldManager="+manager)
			t.Logf("%s: %d %.300s", manager, answer.Code, answer.Status.Message)
			// Flux reconciles its unchanged manifest.
			object := o.read(t)
			fluxPatch(object, "kustomize-controller")
			expect(t, send(t, o.admin(t), http.MethodPut, o.path(), "application/json", object, "fieldManager=kustomize-controller"), 200)
			expect(t, o.apply(t, o.admin(t), "kustomize-controller", manifest), 200)
			after, _ := json.Marshal(o.read(t))
			if !o.has(t, "metadata", "annotations", "policy.io/approved") {
				t.Errorf("a holder of granular:annotation(x.io) has had policy.io/approved removed\n before %s\n after  %s", before, after)
			}
		})
	}
}

// D8: an API server with an object of fewer values than the documented bound.
func TestD8_AnApplyBelowTheBoundOfValues(t *testing.T) {
	s := start(t)
	grant(t, s, "keys", rule("", []string{"configmaps"}, "get", "granular", "granular:datum"))
	o := &thing{s, "v1", "configmaps", "ConfigMap", "many"}
	remove(t, s, o.resource, o.name)
	data := map[string]any{}
	for i := range 2700 {
		data["k"+strings.Repeat("0", 3)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676%26))] = "1"
	}
	content := o.document(t, `{}`)
	content["data"] = data
	expect(t, send(t, o.admin(t), http.MethodPatch, o.path(), "application/apply-patch+yaml", content, "fieldManager=owner", "force=true"), 201)
	answer := o.apply(t, wire(t, s, "keys"), "keys", `{"data":{"mine":"1"}}`)
	t.Logf("2700 keys: %d %.400s", answer.Code, answer.Status.Message)
	if answer.Code != 200 {
		t.Error("refused, although the object has 2,700 values")
	}
}

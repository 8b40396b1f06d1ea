//go:build integration

package status

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/test/cluster"
)

// TestWriter_ReplicasOnACluster: if two replicas check the same object, one writes; the other checks again and finds nothing to
// write. A condition of another writer stays.
func TestWriter_ReplicasOnACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Config{})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	admin, err := c.User("admin", "system:masters")
	must(t, err)
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", "../../config/crd"},
		{"wait", "--for=condition=Established", "--timeout=20s", "-f", "../../config/crd"},
	} {
		if _, stderr, err := c.Kubectl(admin).Run(ctx, "", args...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
	}
	client, err := dynamic.NewForConfig(c.Admin())
	must(t, err)
	resource := client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.UncoveredPermissionSetResource))
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "fieldperm.dev/v1alpha1", "kind": "UncoveredPermissionSet", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"uncoveredPermissions": []any{"granular:scale"}},
	}}
	_, err = resource.Create(ctx, set, metav1.CreateOptions{})
	must(t, err)
	liked := set.DeepCopy()
	liked.Object = map[string]any{"apiVersion": "fieldperm.dev/v1alpha1", "kind": "UncoveredPermissionSet", "metadata": map[string]any{"name": "a"}, "status": map[string]any{
		"conditions": []any{map[string]any{"type": "Liked", "status": "True", "reason": "Taste", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}},
	}}
	_, err = resource.ApplyStatus(ctx, "a", liked, metav1.ApplyOptions{FieldManager: "other"})
	must(t, err)
	get := func() *unstructured.Unstructured {
		t.Helper()
		is, err := resource.Get(ctx, "a", metav1.GetOptions{})
		must(t, err)
		return is
	}

	seen := get()
	replica := func(reason string) *Writer {
		return New(Config{
			Client: client, Known: func() []*unstructured.Unstructured { return []*unstructured.Unstructured{seen} },
			States: func() []sources.ObjectState {
				return []sources.ObjectState{{Kind: "UncoveredPermissionSet", Name: "a", UID: seen.GetUID(), Generation: 1, GuardedFields: []v1alpha1.GuardedFields{{Group: "apps", Resource: "deployments", Fields: 1}}, Documents: compile.Documents{Uncovered: make([]sets.Document, 1)}}}
			},
			Enforced: func(*sources.ObjectState) Enforcement {
				return Enforcement{Status: metav1.ConditionTrue, Reason: reason}
			},
		})
	}
	first, second := replica("First"), replica("Second")
	must(t, first.Write(ctx))
	written := get()
	must(t, second.Write(ctx)) // it has seen nothing newer than what it replaces
	if is := get(); is.GetResourceVersion() != written.GetResourceVersion() {
		t.Errorf("a replica has overwritten a newer status: %v", is.Object["status"])
	}
	seen = written
	must(t, first.Write(ctx))
	if is := get(); is.GetResourceVersion() != written.GetResourceVersion() {
		t.Errorf("written without a difference: %v", is.Object["status"])
	}
	must(t, second.Write(ctx))
	status, err := statusOf(get())
	must(t, err)
	reasons := map[string]string{}
	for _, one := range status.Conditions {
		reasons[one.Type] = one.Reason
	}
	if len(reasons) != 3 || reasons["Liked"] != "Taste" || reasons["Compiled"] != v1alpha1.ReasonCompiled || reasons["Enforced"] != "Second" || status.ObservedGeneration != 1 {
		t.Errorf("got %+v", status)
	}

	// An object that is created again with the same name is not the object that was compiled.
	must(t, resource.Delete(ctx, "a", metav1.DeleteOptions{}))
	_, err = resource.Create(ctx, set, metav1.CreateOptions{})
	must(t, err)
	must(t, replica("Third").Write(ctx))
	if is := get(); is.Object["status"] != nil {
		t.Errorf("the status of another object: %v", is.Object["status"])
	}
	must(t, resource.Delete(ctx, "a", metav1.DeleteOptions{}))
	must(t, replica("Fourth").Write(ctx))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

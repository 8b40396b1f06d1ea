//go:build integration

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// impersonated sends requests as a user that an administrator impersonates.
func impersonated(t *testing.T, s *stack.Stack, name string) *corpus.Wire {
	t.Helper()
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	config := rest.CopyConfig(admin.Config)
	config.Impersonate.UserName = name
	w, err := corpus.NewWire(config)
	must(t, err)
	return w
}

// doorVersions are the versions of a definition in which v1 lacks a field of v1alpha1.
func doorVersions(storage string) string {
	const version = `{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"}%s}}}}}}`
	return "[" + fmt.Sprintf(version, "v1alpha1", storage == "v1alpha1", `,"secret":{"type":"string"}`) + "," + fmt.Sprintf(version, "v1", storage == "v1", "") + "]"
}

// TestC2_RemovingAStoredVersionLiftsNoBarrier: a write through v1 erases a guarded field of objects that are stored in v1alpha1. It is
// refused as long as the definition says that such objects may exist.
func TestC2_RemovingAStoredVersionLiftsNoBarrier(t *testing.T) {
	s := start(t)
	install(t, s)
	const group, name, crds = "stored.example.com", "doors.stored.example.com", "apiextensions.k8s.io"
	const definition = "/apis/" + crds + "/v1/customresourcedefinitions/" + name
	grant(t, s, "definer", rule(crds, []string{"customresourcedefinitions"}, "create", "update", "patch"))
	both := []string{"get", "update", "patch"}
	grant(t, s, "dropper", rule(group, []string{"doors"}, both...), rule(crds, []string{"customresourcedefinitions/status"}, both...))
	grant(t, s, "keeper", rule(crds, []string{"customresourcedefinitions/status"}, append(both, "granular:storedVersions")...))
	grant(t, s, "beside", rule(crds, []string{"customresourcedefinitions/status"}, both...), rule(crds, []string{"customresourcedefinitions"}, "granular:storedVersions"))
	definer, dropper := wire(t, s, "definer"), wire(t, s, "dropper")

	// A change that the API server makes to the list because of a new definition, or of another storage version, needs no verb.
	remove(t, s, "customresourcedefinition", name)
	expect(t, send(t, definer, http.MethodPost, "/apis/"+crds+"/v1/customresourcedefinitions", "application/json", fields(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"`+name+`"},"spec":{"group":"`+group+`","scope":"Namespaced","names":{"kind":"Door","plural":"doors"},"versions":`+doorVersions("v1alpha1")+`}}`)), http.StatusCreated)
	established(t, s, name)
	mustKubectl(t, s, "", "annotate", "customresourcedefinition", name, `fieldperm.dev/permission-verbs={"v1alpha1":[{"path":".spec.secret","verb":"example.com/secret","excluded":true}],"v1":[{"path":".spec.color","verb":"example.com/color"}]}`)
	old := &thing{s, group + "/v1alpha1", "doors", "Door", "one"}
	eventually(t, func() *corpus.Answer {
		return send(t, old.admin(t), http.MethodPost, old.collection(), "application/json", old.document(t, `{"spec":{"color":"red","secret":"s"}}`))
	}, http.StatusCreated)
	expect(t, send(t, definer, http.MethodPatch, definition, merge, fields(t, `{"spec":{"versions":`+doorVersions("v1")+`}}`)), http.StatusOK)

	stored := func() string {
		return mustKubectl(t, s, "", "get", "customresourcedefinition", name, "-o", "jsonpath={.status.storedVersions}")
	}
	if got := stored(); got != `["v1alpha1","v1"]` {
		t.Fatalf("stored versions %s: nothing is shown", got)
	}
	door := old.in(group + "/v1")
	erase := func() *corpus.Answer { return door.patch(t, dropper, `{"spec":{"color":"blue"}}`) }
	inForce(t, "the barrier of v1alpha1 in v1", func() *corpus.Answer {
		return send(t, dropper, http.MethodPatch, door.path(), merge, fields(t, `{"spec":{"color":"blue"}}`), "dryRun=All")
	}, http.StatusForbidden)

	drop := func(as *corpus.Wire, versions string, query ...string) *corpus.Answer {
		return send(t, as, http.MethodPatch, definition+"/status", merge, fields(t, `{"status":{"storedVersions":`+versions+`}}`), query...)
	}
	for _, versions := range []string{`["v1"]`, `["v1alpha1"]`, `["v1","v1"]`, `["v1","v1alpha1"]`, `[]`, `null`} {
		refusedFor(t, drop(dropper, versions), "granular:storedVersions")
	}
	// The verb counts on the written endpoint, as every verb does.
	refusedFor(t, drop(wire(t, s, "beside"), `["v1"]`), "granular:storedVersions")
	refusedFor(t, erase(), "granular:example.com/secret")
	expect(t, drop(wire(t, s, "keeper"), `["v1"]`, "dryRun=All"), http.StatusOK)

	// The storage version migrator of kube-controller-manager first applies a condition, and applies the list at the end.
	binding, err := clients(t, s).RbacV1().ClusterRoleBindings().Get(t.Context(), "system:controller:storage-version-migrator-controller", metav1.GetOptions{})
	must(t, err)
	migrator := impersonated(t, s, "system:serviceaccount:"+binding.Subjects[0].Namespace+":"+binding.Subjects[0].Name)
	apply := func(status string) *corpus.Answer {
		return send(t, migrator, http.MethodPatch, definition+"/status", "application/apply-patch+yaml", fields(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"`+name+`"},"status":`+status+`}`),
			"fieldManager=storage-version-migration-runner", "force=true")
	}
	condition := func(status string) string {
		return `"conditions":[{"type":"StorageMigrating","status":"` + status + `","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]`
	}
	expect(t, apply(`{`+condition("True")+`}`), http.StatusOK)
	expect(t, apply(`{`+condition("False")+`,"storedVersions":["v1"]}`), http.StatusOK)
	if got := stored(); got != `["v1"]` {
		t.Errorf("stored versions %s after the migrator's write, want v1 alone", got)
	}
	refusedFor(t, send(t, migrator, http.MethodPatch, definition+"/status", merge, fields(t, `{"status":{"acceptedNames":{"kind":"Other"}}}`)), "granular:acceptedNames")
}

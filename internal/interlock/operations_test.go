package interlock

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestA5_EveryOperationIsInTheConfiguration: a proven configuration covers deletions and connections, for which no probe is sent.
func TestA5_EveryOperationIsInTheConfiguration(t *testing.T) {
	for _, readable := range []bool{true, false} {
		w := newWorld(t, readable)
		connection := asking("create", "", "pods", "web")
		connection.Subresource = "exec"
		for of, want := range map[*authorizationv1.ResourceAttributes]bool{
			asking("create", "", "configmaps", ""): true, asking("update", "", "configmaps", "web"): true, asking("patch", "", "configmaps", "web"): true,
			asking("delete", "", "configmaps", "web"): true, asking("deletecollection", "", "configmaps", ""): true, connection: true,
			asking("get", "", "configmaps", "web"): false,
		} {
			if w.Enforced(t.Context(), of) == nil {
				t.Errorf("%s of %s before the first round", of.Verb, of.Resource)
			}
			w.round(t.Context())
			if err := w.Enforced(t.Context(), of); (err == nil) != want {
				t.Errorf("%s of %s: %v, %v", of.Verb, of.Resource, err, w.Status())
			}
			w.withdraw(ReasonConfigurationChanged, errNotProven)
			w.clock.Step(loadedPause)
		}
	}
}

// TestA5_NoDeletionIsProvenOnAnAggregatedServer: such a server may ignore that a probe is a dry run.
func TestA5_NoDeletionIsProvenOnAnAggregatedServer(t *testing.T) {
	w := newWorld(t, true)
	w.prove(t)
	if err := w.Enforced(t.Context(), asking("update", elsewhere, "widgets", "web")); err != nil {
		t.Fatal(err)
	}
	if w.Enforced(t.Context(), asking("delete", elsewhere, "widgets", "web")) == nil {
		t.Error("a deletion is let through")
	}
}

package interlock

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

func deletion() *authorizationv1.ResourceAttributes { return asking("delete", "", "configmaps", "web") }

func connection() *authorizationv1.ResourceAttributes {
	a := asking("create", "", "pods", "web")
	a.Subresource = "exec"
	return a
}

// TestA5_DeletionsAndConnectionsHaveProofsOfTheirOwn: what only conditions allow is let through only if every server has shown that its
// admission sees it. Another policy that refuses the probes keeps nothing else from being let through.
func TestA5_DeletionsAndConnectionsHaveProofsOfTheirOwn(t *testing.T) {
	on := func(operation Operation, fault string) func(Target) string {
		return func(t Target) string { return map[bool]string{true: fault}[t.Operation == operation] }
	}
	const other = "admission webhook \"other\" denied the request"
	for name, c := range map[string]struct {
		fault                  func(Target) string
		write, delete, connect bool
	}{
		"all seen":                       {always(""), true, true, true},
		"deletions refused by another":   {on(admissionv1.Delete, other), true, false, true},
		"connections refused by another": {on(admissionv1.Connect, other), true, true, false},
		"the object is not there":        {on(admissionv1.Delete, "not found"), true, false, true},
		"deletions pass":                 {on(admissionv1.Delete, "passes"), false, false, false},
		"connections pass":               {on(admissionv1.Connect, "no such pod"), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, true)
			w.apis[1].set(c.fault)
			w.round(t.Context())
			w.clock.Step(settle)
			w.round(t.Context())
			for of, want := range map[*authorizationv1.ResourceAttributes]bool{
				asking("update", "", "configmaps", "web"): c.write, deletion(): c.delete, asking("deletecollection", "", "configmaps", ""): c.delete, connection(): c.connect,
			} {
				if err := w.Enforced(t.Context(), of); (err == nil) != want {
					t.Errorf("%s of %s: %v, %v", of.Verb, of.Resource, err, w.Status())
				}
			}
			if listed := w.Unproven(); (len(listed) > 0) != (c.write && !(c.delete && c.connect)) {
				t.Errorf("Unproven is %v", listed)
			}
			w.apis[1].set(always(""))
			w.round(t.Context())
			w.clock.Step(settle)
			w.round(t.Context())
			if err := w.Enforced(t.Context(), deletion()); err != nil {
				t.Errorf("after the fault: %v", err)
			}
		})
	}
}

// TestA5_DeletionsAreProvenOnceForEachWithdrawal: the configuration cannot change without one.
func TestA5_DeletionsAreProvenOnceForEachWithdrawal(t *testing.T) {
	w := newWorld(t, true)
	sent := func() (n int) {
		w.apis[0].mu.Lock()
		defer w.apis[0].mu.Unlock()
		for _, target := range w.apis[0].sent {
			if slices.Contains([]Operation{admissionv1.Delete, admissionv1.Connect}, target.Operation) {
				n++
			}
		}
		return n
	}
	w.prove(t)
	before := sent()
	w.round(t.Context())
	if sent() != before {
		t.Errorf("%d more probes without a withdrawal", sent()-before)
	}
	w.withdraw(ReasonSettling, errNotProven)
	if w.Enforced(t.Context(), deletion()) == nil {
		t.Error("a deletion is let through after a withdrawal")
	}
	w.round(t.Context())
	if sent() != before+2 {
		t.Errorf("%d probes after a withdrawal", sent()-before)
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

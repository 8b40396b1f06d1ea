//go:build integration

package uncovered

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/test/cluster"
)

// installed starts a control plane with the manifests of fieldperm-gen, including the policy. It returns the control plane, an
// administrator's client, and a client of fieldperm's own user, so that fieldperm's permissions are tested too.
func installed(t *testing.T) (*cluster.Cluster, kubernetes.Interface, kubernetes.Interface) {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	admin, err := c.User("admin", "system:masters")
	must(t, err)
	own, err := c.User("fieldperm")
	must(t, err)
	ca, err := os.ReadFile("../../generators/testdata/ca.crt")
	must(t, err)
	files, err := generators.ClusterManifests(generators.Options{REST: true, Options: webhooks.Options{User: "fieldperm", ServiceURL: "https://127.0.0.1:1", CABundle: ca}})
	must(t, err)
	for _, f := range files {
		if _, stderr, err := c.Kubectl(admin).Run(t.Context(), string(f.Data), "apply", "--server-side", "-f", "-"); err != nil {
			t.Fatalf("%s: %v: %s", f.Name, err, stderr)
		}
	}
	asAdmin, err := kubernetes.NewForConfig(admin.Config)
	must(t, err)
	asOwn, err := kubernetes.NewForConfig(own.Config)
	must(t, err)
	return c, asAdmin, asOwn
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// TestW2_KeepersOnACluster: two replicas, one of them behind, maintain one configuration without undoing each other's changes. They
// create it again after a deletion, but not while fieldperm is being uninstalled.
func TestW2_KeepersOnACluster(t *testing.T) {
	_, admin, own := installed(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	a, b := newFixture(t, own, set("", "secrets")), newFixture(t, own, set("", "secrets"))
	for _, f := range []*fixture{a, b} {
		running.Go(func() { f.Run(ctx) })
	}
	at := func() (string, []string) {
		c := live(t, admin)
		if c == nil {
			return "", nil
		}
		return c.ResourceVersion, names(rulesOf(c))
	}
	has := func(names ...string) func() bool {
		return func() bool { _, got := at(); return slices.Equal(got, names) }
	}
	eventually(t, "made", has("/secrets", "/secrets/*"))

	// Both may have made it at the same time. Then one writes a new state, and further checks by any replica write nothing.
	eventually(t, "nothing is written", func() bool {
		before, _ := at()
		for range 20 {
			a.Changed()
			b.Changed()
			time.Sleep(20 * time.Millisecond)
		}
		now, _ := at()
		return now == before && webhooks.State(live(t, admin)) != ""
	})

	// One replica has a new schema. The other is behind, then catches up.
	a.use(set("", "secrets"), set("apps", "deployments"))
	both := []string{"/secrets", "/secrets/*", "apps/deployments", "apps/deployments/*"}
	eventually(t, "added", has(both...))
	version, _ := at()
	for range 20 {
		b.Changed()
		time.Sleep(20 * time.Millisecond)
	}
	b.use(set("", "secrets"), set("apps", "deployments"))
	eventually(t, "enforced", func() bool { ok, _ := b.Enforced(rules("apps/deployments")); return ok })
	if now, got := at(); now != version || !slices.Equal(got, both) {
		t.Errorf("resourceVersion went from %s to %s, rules are %q", version, now, got)
	}

	// The configuration is deleted; the policy was removed before, because it prevents that.
	must(t, admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), webhooks.GuardName, metav1.DeleteOptions{}))
	before := live(t, admin).UID
	configurations := admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	eventually(t, "deleted", func() bool {
		return configurations.Delete(t.Context(), webhooks.UncoveredName, metav1.DeleteOptions{}) == nil
	})
	eventually(t, "made again", func() bool { c := live(t, admin); return c != nil && c.UID != before && has(both...)() })
	eventually(t, "enforced again", func() bool { ok, _ := a.Enforced(rules("apps/deployments")); return ok })

	// A user changes the configuration and owns the changed fields: server-side apply would keep the added condition.
	change := []byte(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"fieldperm-uncovered"},"webhooks":[{"name":"uncovered.fieldperm.dev","namespaceSelector":{"matchLabels":{"a":"b"}},"matchConditions":[{"name":"never","expression":"false"}]}]}`)
	eventually(t, "changed by another", func() bool {
		_, err := configurations.Patch(t.Context(), webhooks.UncoveredName, types.ApplyPatchType, change, metav1.PatchOptions{FieldManager: "someone", Force: new(true)})
		return err == nil
	})
	eventually(t, "put right", func() bool {
		c := live(t, admin)
		w := c.Webhooks[0]
		return webhooks.State(c) != "" && !slices.ContainsFunc(w.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == "never" }) && len(w.NamespaceSelector.MatchLabels) == 0
	})
	version, _ = at()
	time.Sleep(500 * time.Millisecond)
	if now, _ := at(); now != version {
		t.Errorf("resourceVersion went from %s to %s: replicas undo each other's work", version, now)
	}

	// fieldperm is uninstalled: the owner is being deleted, and the configuration is not created again.
	must(t, configurations.Delete(t.Context(), webhooks.RESTName, metav1.DeleteOptions{}))
	eventually(t, "noticed", func() bool { ok, _ := a.Enforced(rules("/secrets")); return !ok })
	eventually(t, "noticed", func() bool { ok, _ := b.Enforced(rules("/secrets")); return !ok })
	must(t, own.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), webhooks.UncoveredName, metav1.DeleteOptions{}))
	a.Changed()
	b.Changed()
	time.Sleep(500 * time.Millisecond)
	if live(t, admin) != nil {
		t.Error("made again while fieldperm is uninstalled")
	}
}

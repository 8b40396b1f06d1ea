//go:build integration

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/test/cluster"
)

// guarded is a separate control plane with the output of "fieldperm-gen manifests --rest" for the cluster, and without fieldperm: the API
// server itself decides which users may change fieldperm's configurations.
type guarded struct {
	*cluster.Cluster
	options generators.Options
	files   map[string]string
	// masters is a member of system:masters, root is bound to cluster-admin, own is fieldperm.
	masters, root, own, cainjector *cluster.User
	// ca and otherCA are certificates.
	ca, otherCA []byte
}

func startGuarded(t *testing.T) *guarded {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	g := &guarded{Cluster: c, files: map[string]string{}, options: generators.Options{
		REST: true, Options: webhooks.Options{Service: &webhooks.ServiceReference{Namespace: "fieldperm-system", Name: "fieldperm"}},
	}}
	files, err := generators.ClusterManifests(g.options)
	must(t, err)
	user := func(name string, groups ...string) *cluster.User {
		u, err := c.User(name, groups...)
		must(t, err)
		return u
	}
	g.otherCA = c.Admin().CAData
	g.ca, err = os.ReadFile("../../generators/testdata/ca.crt")
	must(t, err)
	g.masters, g.root = user("admin", "system:masters"), user("root")
	g.own, g.cainjector = user(webhooks.DefaultUser, "system:serviceaccounts"), user(injector, "system:serviceaccounts")
	for _, f := range files {
		g.files[f.Name] = string(f.Data)
		g.kubectl(t, g.masters, g.files[f.Name], "apply", "--server-side", "-f", "-")
	}
	for _, u := range []*cluster.User{g.root, g.cainjector} {
		g.kubectl(t, g.masters, "", "create", "clusterrolebinding", strings.ReplaceAll(u.Name, ":", "-"), "--clusterrole=cluster-admin", "--user="+u.Name)
	}
	return g
}

func (g *guarded) kubectl(t *testing.T, user *cluster.User, stdin string, args ...string) {
	t.Helper()
	if _, stderr, err := g.Kubectl(user).Run(t.Context(), stdin, args...); err != nil {
		t.Fatalf("kubectl %v as %q: %v: %s", args, user.Name, err, stderr)
	}
}

func (g *guarded) configurations(t *testing.T, user *cluster.User) admissionregistrationclient.ValidatingWebhookConfigurationInterface {
	t.Helper()
	c, err := kubernetes.NewForConfig(user.Config)
	must(t, err)
	return c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
}

// change reads a configuration, changes it and writes it back.
func (g *guarded) change(t *testing.T, user *cluster.User, name string, change func(*configuration)) error {
	t.Helper()
	client := g.configurations(t, user)
	for {
		live, err := client.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		change(live)
		if _, err = client.Update(t.Context(), live, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// await waits until the policy is in force: the API server learns about it by a watch.
func (g *guarded) await(t *testing.T) {
	t.Helper()
	client := g.configurations(t, g.masters)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		probe := webhooks.GranularConfiguration(g.options.Options)
		probe.Finalizers = nil
		live, err := client.Get(t.Context(), probe.Name, metav1.GetOptions{})
		must(t, err)
		probe.ResourceVersion = live.ResourceVersion
		_, err = client.Update(t.Context(), probe, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the policy is not in force: %v", err)
		}
	}
}

// wanted checks that the policy refused a change with a message, or accepted it if the message is empty.
func wanted(t *testing.T, err error, message string) {
	t.Helper()
	switch {
	case message == "":
		must(t, err)
	case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), `to do so all the same, delete the ValidatingAdmissionPolicyBinding "fieldperm-guard" first`):
		t.Errorf("error is %v; want a refusal with %q and the way out", err, message)
	}
}

// keep applies a configuration as fieldperm does.
func (g *guarded) keep(t *testing.T, c *configuration) {
	t.Helper()
	g.kubectl(t, g.own, encode(t, c), "apply", "--server-side", "--field-manager=fieldperm", "--force-conflicts", "-f", "-")
}

// undo reverts a change that fieldperm's own user made.
func (g *guarded) undo(t *testing.T, name string, change func()) {
	t.Helper()
	before, err := g.configurations(t, g.own).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	change()
	must(t, g.change(t, g.own, name, func(c *configuration) {
		c.Webhooks, c.OwnerReferences, c.Finalizers = before.Webhooks, before.OwnerReferences, before.Finalizers
	}))
}

// refusedAs checks that authorization refused a user.
func refusedAs(t *testing.T, err error, user, message string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("User %q", user)) || !strings.Contains(err.Error(), message) {
		t.Errorf("error is %v; want a refusal of %q with %q", err, user, message)
	}
}

func encode(t *testing.T, c *configuration) string {
	t.Helper()
	raw, err := yaml.Marshal(c)
	must(t, err)
	return string(raw)
}

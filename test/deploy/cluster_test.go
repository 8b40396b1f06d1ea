//go:build integration

package deploy

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/internal/certificates"
	"github.com/fieldperm/fieldperm/test/cluster"
)

func start(t *testing.T) (*cluster.Cluster, func(stdin []byte, arguments ...string) string) {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := c.User("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return c, func(stdin []byte, arguments ...string) string {
		t.Helper()
		out, errs, err := c.Kubectl(admin).Run(t.Context(), string(stdin), arguments...)
		if err != nil {
			t.Fatalf("%v: %s", err, errs)
		}
		return out
	}
}

// withoutCertManager removes the objects whose definitions belong to cert-manager.
func withoutCertManager(t *testing.T, text []byte) []byte {
	t.Helper()
	var out [][]byte
	for _, document := range split(t, text) {
		if !bytes.Contains(document, []byte("apiVersion: cert-manager.io/")) {
			out = append(out, document)
		}
	}
	return bytes.Join(out, []byte("\n---\n"))
}

// A real API server accepts every object of every overlay, of the components and of the chart's hook.
func TestObjects_AreTakenByAnAPIServer(t *testing.T) {
	_, kubectl := start(t)
	kubectl(nil, "create", "namespace", "fieldperm-system")
	take := func(name string, text []byte) {
		text = withoutCertManager(t, text)
		out := kubectl(text, "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-")
		if got, want := strings.Count(out, "serverside-applied"), len(split(t, text)); got != want {
			t.Errorf("%s: %d of %d objects were taken:\n%s", name, got, want, out)
		}
	}
	for _, o := range overlays(t) {
		take(o.name+" by kustomize", o.kustomize(t))
		take(o.name+" by Helm", o.helm(t))
	}
	take("components", withComponents(t))
}

// fieldperm can manage its certificates with the installed permissions of its own service account, and with the guard in force: the Role
// for the Secret is enough, and the CA is written into the webhooks.
func TestSelfManaged_CertificatesCanBeKept(t *testing.T) {
	c, kubectl := start(t)
	text := overlays(t)[0].kustomize(t)
	kubectl(text, "apply", "--server-side", "-f", "-")
	account, err := c.User("system:serviceaccount:fieldperm-system:fieldperm", "system:serviceaccounts", "system:serviceaccounts:fieldperm-system")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(account.Config)
	if err != nil {
		t.Fatal(err)
	}
	serverTime, err := certificates.ServerTime(account.Config)
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := certificates.New(certificates.Config{
		ServerTime: serverTime,
		Client:     client, Namespace: "fieldperm-system", Name: "fieldperm-tls", DNSNames: []string{"fieldperm.fieldperm-system.svc"}, WebhookConfiguration: "fieldperm",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { keeper.Run(ctx) })
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := keeper.Await(waiting); err != nil {
		t.Fatal(err)
	}
	configurations := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	published := func(context.Context) (bool, error) {
		configuration, err := configurations.Get(ctx, "fieldperm", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, w := range configuration.Webhooks {
			if len(keeper.CABundle()) == 0 || !bytes.Equal(w.ClientConfig.CABundle, keeper.CABundle()) {
				return false, nil
			}
		}
		return len(configuration.Webhooks) > 0, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, published); err != nil {
		t.Fatalf("the CA is not in the webhooks: %v", err)
	}

	// An upgrade does not change the CA.
	kubectl(text, "apply", "--server-side", "-f", "-")
	if ok, err := published(ctx); err != nil || !ok {
		t.Errorf("applying again took the CA away: %v", err)
	}
	first := keeper.CABundle()

	// An administrator deletes the Secret to get new certificates; informers notice it.
	kubectl(nil, "-n", "fieldperm-system", "delete", "secret", "fieldperm-tls")
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		ok, err := published(ctx)
		return ok && !bytes.Equal(first, keeper.CABundle()), err
	}); err != nil {
		t.Fatalf("the new CA is not in the webhooks: %v", err)
	}
	if _, err := client.CoreV1().Secrets("fieldperm-system").Get(ctx, "another", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("fieldperm may read other Secrets: %v", err)
	}
}

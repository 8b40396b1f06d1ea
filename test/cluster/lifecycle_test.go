//go:build integration

package cluster

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Stored objects still exist after each of the two processes was killed and started again, under the same address and with the same
// certificates.
func TestLifecycle_KilledAndStartedAgain(t *testing.T) {
	c, err := Start(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	_, stderr, err := c.Kubectl(user(t, c, "admin", mastersGroup)).Run(t.Context(), configMap("kept"), "create", "-f", "-")
	if err != nil {
		t.Fatal(stderr, err)
	}
	for _, name := range []string{APIServer, Etcd} {
		if err := c.Signal(name, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := c.Shutdown(name); err != nil {
			t.Fatal(err)
		}
		if err := c.Signal(name, syscall.SIGCONT); err == nil {
			t.Errorf("%s: takes a signal after its end", name)
		}
		if err := c.Boot(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		awaitKept(t, c.Admin())
	}

	// While frozen, it answers no request; then it continues.
	if err := c.Signal(APIServer, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	frozen := c.Admin()
	frozen.Timeout = 500 * time.Millisecond
	if err := getKept(t.Context(), frozen); err == nil {
		t.Error("a frozen API server answers")
	}
	if err := c.Signal(APIServer, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitKept(t, c.Admin())
}

// A second API server has the objects and knows the users of the first one, and has flags of its own.
func TestAddAPIServer_SharesObjectsAndUsers(t *testing.T) {
	address, err := PublicAddress()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Config{Dir: t.TempDir(), Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	_, stderr, err := c.Kubectl(user(t, c, "admin", mastersGroup)).Run(t.Context(), configMap("kept"), "create", "-f", "-")
	if err != nil {
		t.Fatal(stderr, err)
	}
	if err := c.AddAPIServer(t.Context(), "second", Config{ExtraArgs: map[string][]string{"disable-admission-plugins": {"ServiceAccount", "ValidatingAdmissionWebhook"}}}); err != nil {
		t.Fatal(err)
	}
	if err := c.AddAPIServer(t.Context(), "second", Config{}); err == nil {
		t.Error("the name is taken, and no error")
	}
	second := c.At(c.Admin(), "second")
	if second.Host == c.Admin().Host {
		t.Fatalf("both at %s", second.Host)
	}
	awaitKept(t, second)
	named := rest.CopyConfig(second)
	named.ServerName = "kubernetes.default.svc"
	awaitKept(t, named)
}

// awaitKept waits until the object of the test can be read.
func awaitKept(t *testing.T, config *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var last error
	for {
		err := getKept(ctx, config)
		if err == nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(last, err)
		}
		last = err
		time.Sleep(50 * time.Millisecond)
	}
}

func getKept(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
	return err
}

package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fieldperm/fieldperm/test/stack"

	webv1 "github.com/fieldperm/fieldperm/examples/operator/website/api/v1"
)

// operator is the user of the operator: the ServiceAccount of config/rbac.
const operator = "system:serviceaccount:website-system:website"

// control is the control plane of all tests: etcd, kube-apiserver and fieldperm.
var control *stack.Stack

var scheme = runtime.NewScheme()

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return 1, err
	}
	if err := webv1.AddToScheme(scheme); err != nil {
		return 1, err
	}

	// This is all that a test needs to have fieldperm: a control plane that runs it, which envtest takes instead of its own.
	if control, err = stack.Start(ctx, stack.Config{Bin: os.Getenv("FIELDPERM_BIN")}); err != nil {
		return 1, err
	}
	defer control.Stop() //nolint:errcheck // The processes end with the test in any case.
	environment := &envtest.Environment{
		UseExistingCluster:    ptr.To(true),
		Config:                control.Admin(),
		Scheme:                scheme,
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	if _, err := environment.Start(); err != nil {
		return 1, err
	}
	for _, file := range []string{"role-fieldperm.yaml", "role_binding.yaml", "website_roles.yaml"} {
		if err := control.Apply(ctx, filepath.Join("..", "..", "config", "rbac", file)); err != nil {
			return 1, err
		}
	}
	if err := control.AwaitGrants(ctx); err != nil {
		return 1, err
	}
	if err := control.AwaitKind(ctx, webv1.GroupVersion.WithResource("websites"), "Website"); err != nil {
		return 1, err
	}
	if err := start(ctx); err != nil {
		return 1, err
	}
	return m.Run(), environment.Stop()
}

// start runs the operator as its own user, with its own role.
func start(ctx context.Context) error {
	user, err := control.User(operator)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(user.Config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := (&WebsiteReconciler{Client: manager.GetClient()}).SetupWithManager(manager); err != nil {
		return err
	}
	go func() {
		if err := manager.Start(ctx); err != nil {
			panic(err)
		}
	}()
	return nil
}

// as returns the client of a user.
func as(t *testing.T, name string, groups ...string) client.Client {
	t.Helper()
	user, err := control.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(user.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually returns when a condition on the website is true.
func eventually(t *testing.T, c client.Client, site *webv1.Website, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return c.Get(ctx, client.ObjectKeyFromObject(site), site) == nil && is(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v: the website is %+v", what, err, site)
	}
}

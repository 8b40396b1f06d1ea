//go:build integration

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// All tests that can share a cluster use one: a start takes seconds.
func TestCluster(t *testing.T) {
	work := t.TempDir()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	audit := filepath.Join(work, "audit.log")
	var log bytes.Buffer
	c, err := Start(t.Context(), Config{
		AuthorizationConfig: file(t, work, "authorization.yaml", rbacOnly),
		AdmissionConfig:     admissionConfig(t, work, port),
		AuditLog:            audit,
		Log:                 &log,
		Dir:                 work,
		ExtraArgs:           map[string][]string{"max-requests-inflight": {"123"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() }) // It is for a test that ends early: normally a subtest stops the cluster.

	admin, alice := user(t, c, "admin", mastersGroup), user(t, c, "alice", "developers")

	t.Run("AdminCreates", func(t *testing.T) {
		stdout, stderr, err := c.Kubectl(admin).Run(t.Context(), configMap("settings"), "create", "-f", "-")
		if err != nil || stdout != "configmap/settings created\n" {
			t.Errorf("stdout %q, stderr %q, %v", stdout, stderr, err)
		}
	})

	t.Run("UserWithoutRightsGets403", func(t *testing.T) {
		stdout, stderr, err := c.Kubectl(alice).Run(t.Context(), configMap("other"), "create", "-f", "-")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || stdout != "" {
			t.Errorf("stdout %q, %v; want exit code 1", stdout, err)
		}
		const want = `Error from server (Forbidden): error when creating "STDIN": configmaps is forbidden: User "alice" ` +
			`cannot create resource "configmaps" in API group "" in the namespace "default"` + "\n"
		if stderr != want {
			t.Errorf("stderr %q; want %q", stderr, want)
		}
	})

	t.Run("GroupsAndNamesReachTheServer", func(t *testing.T) {
		robot := user(t, c, "system:serviceaccount:shop:robot", "system:serviceaccounts", "system:serviceaccounts:shop")
		stdout, stderr, err := c.Kubectl(robot).Run(t.Context(), "", "auth", "whoami", "-o", "json")
		if err != nil {
			t.Fatalf("stderr %q, %v", stderr, err)
		}
		var review struct {
			Status struct {
				UserInfo struct {
					Username string
					Groups   []string
				}
			}
		}
		if err := json.Unmarshal([]byte(stdout), &review); err != nil {
			t.Fatal(err)
		}
		got := review.Status.UserInfo
		want := []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"}
		slices.Sort(got.Groups)
		slices.Sort(want)
		if got.Username != robot.Name || !slices.Equal(got.Groups, want) {
			t.Errorf("user %q of %q; want %q of %q", got.Username, got.Groups, robot.Name, want)
		}
		if strings.Contains(filepath.Base(robot.Kubeconfig), ":") {
			t.Errorf("kubeconfig %q holds a colon", robot.Kubeconfig)
		}
	})

	t.Run("SameUserSameCertificate", func(t *testing.T) {
		again, others := user(t, c, "alice", "developers"), user(t, c, "alice", "owners")
		if again != alice || others == alice || others.Kubeconfig == alice.Kubeconfig {
			t.Errorf("again %p, others %p %q; alice is %p %q", again, others, others.Kubeconfig, alice, alice.Kubeconfig)
		}
	})

	t.Run("StaticManifestIsEnforced", func(t *testing.T) {
		// No process listens on the webhook's port, and the webhook fails closed, even for the administrator.
		_, stderr, err := c.Kubectl(admin).Run(t.Context(), "", "create", "secret", "generic", "key")
		if err == nil || !strings.Contains(stderr, `failed calling webhook "closed.static.k8s.io"`) {
			t.Errorf("stderr %q, %v; want the webhook's failure", stderr, err)
		}
	})

	t.Run("AuditLogHasTheDenial", func(t *testing.T) {
		events, err := os.ReadFile(audit)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(events)) {
			if strings.Contains(line, `"username":"alice"`) && strings.Contains(line, `"authorization.k8s.io/decision":"forbid"`) {
				return
			}
		}
		t.Errorf("no denial for alice in %s", events)
	})

	t.Run("StopLeavesNothing", func(t *testing.T) {
		if got := processes(t, c.Dir()); len(got) != 3 {
			t.Errorf("running: %q; want etcd, kube-apiserver and the watchdog", got)
		}
		// An open watch must not delay it.
		watch := exec.Command(filepath.Join(c.assets, "kubectl"), "--kubeconfig="+admin.Kubeconfig, "get", "configmaps", "--watch")
		output, err := watch.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := output.Read(make([]byte, 1)); err != nil {
			t.Errorf("watch: %v", err)
		}

		begin := time.Now()
		for range 2 {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		}
		t.Logf("stopped after %s", time.Since(begin))
		_ = watch.Process.Kill()
		_ = watch.Wait()
		requireGone(t, c.Dir())
		for _, want := range []string{"control plane: ready after ", "control plane: stopped\n"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("log %q; want %q once", log.String(), want)
			}
		}
		t.Log(log.String())
	})
}

func TestCluster_StartFailureShowsTheLog(t *testing.T) {
	work := t.TempDir()
	config := file(t, work, "authorization.yaml", strings.Replace(rbacOnly, "type: RBAC", "type: Wishful", 1))
	_, err := Start(t.Context(), Config{AuthorizationConfig: config, Dir: work})
	requireError(t, err, "the log of kube-apiserver ends in:", "authorizers[1].type: Unsupported value", "Wishful")
	requireNoClusters(t, work)
}

func TestCluster_StartEndsWithItsContext(t *testing.T) {
	work := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{Dir: work})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v; want the context's error", err)
	}
	requireNoClusters(t, work)
}

// The test starts itself as a process of its own, which starts a cluster and is then killed without a warning.
func TestCluster_KilledProgramLeavesNothing(t *testing.T) {
	const variable = "FIELDPERM_TEST_CLUSTER_TO_ABANDON"
	if dir := os.Getenv(variable); dir != "" {
		c, err := Start(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\nstarted %s\n", c.Dir())
		select {}
	}

	work := t.TempDir()
	program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	program.Env = append(os.Environ(), variable+"="+work)
	output, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	dir := startedDir(t, output)
	if got := processes(t, dir); len(got) != 3 {
		t.Errorf("running: %q; want etcd, kube-apiserver and the watchdog", got)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // Its error says that it was killed.
	requireGone(t, dir)
}

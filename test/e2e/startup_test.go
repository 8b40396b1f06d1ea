//go:build integration

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// serve prepares a run of the real binary next to the shared one, with the certificates of the shared one, on a port of its own, and with
// an API server that is not running.
func serve(ctx context.Context, t *testing.T, s *stack.Stack, args ...string) (*exec.Cmd, *bytes.Buffer, string) {
	t.Helper()
	dir, config := t.TempDir(), filepath.Join(s.Dir(), "config")
	nowhere, err := cluster.FreePort()
	must(t, err)
	port, err := cluster.FreePort()
	must(t, err)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:%d'}}]}", nowhere), 0o600))
	cmd := exec.CommandContext(ctx, command(t, "fieldperm-webhook"), append([]string{
		"serve", "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port),
		"--tls-cert-file", filepath.Join(config, "serving.crt"), "--tls-private-key-file", filepath.Join(config, "serving.key"),
		"--client-ca-file", filepath.Join(config, "ca.crt"), "--shutdown-delay-duration", "0s",
	}, args...)...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	return cmd, &log, fmt.Sprintf("https://127.0.0.1:%d", port)
}

// TestStart_BadSchemaFile: fieldperm does not start with a faulty schema file, and the error names file and position.
func TestStart_BadSchemaFile(t *testing.T) {
	s := start(t)
	const head = "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: bad}\nspec:\n  kind: ConfigMap\n  permissions:\n"
	for name, c := range map[string]struct{ content, says string }{
		"bad verb":                {head + "  - {path: .data, verb: Data}", "/spec/permissions/0"},
		"unknown path":            {head + "  - {path: .datum, verb: data}", "/spec/permissions/0"},
		"parameter nothing emits": {head + "  - {path: .immutable, verb: immutability, parameterizedBy: nobody}", "/spec/permissions/0"},
		"CEL that does not parse": {head + "  - {path: .immutable, verb: immutability, excludedWhen: 'self =='}", "/spec/permissions/0"},
		"CEL of another type":     {head + "  - {path: .immutable, verb: immutability, excludedWhen: '1 + 1'}", "/spec/permissions/0"},
		"twice the same path":     {head + "  - {path: .data, verb: data}\n  - {path: .data, verb: other}", "/spec/permissions/1"},
		"an unknown key":          {head + "  - {path: .data, verbs: data}", "verbs"},
		"no YAML":                 {"a: b: c", "1"},
		"another kind":            {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "/kind"},
		"a bad uncovered verb":    {"apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: a}\nspec: {uncoveredPermissions: [update]}", "/spec/uncoveredPermissions/0"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "bad.yaml")
			must(t, os.WriteFile(file, []byte(c.content), 0o600))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd, log, _ := serve(ctx, t, s, "--permission-schemas", file)
			if err := cmd.Run(); err == nil || ctx.Err() != nil {
				t.Fatalf("it started: %v", err)
			}
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if !strings.Contains(log.String(), file) || !strings.Contains(log.String(), c.says) {
				t.Errorf("the error does not name %q and %q:\n%s", file, c.says, log)
			}
			if strings.Contains(log.String(), "panic") {
				t.Errorf("it panicked:\n%s", log)
			}
		})
	}
}

// TestStart_BeforeTheAPIServer: fieldperm that starts before the API server waits. It is alive and not ready, allows nothing, and ends on a
// signal. (Every stack tests the other order, the API server first.)
func TestStart_BeforeTheAPIServer(t *testing.T) {
	s := start(t)
	cmd, log, url := serve(t.Context(), t, s)
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	get := func(path string) int {
		response, err := client.Get(url + path)
		if err != nil {
			return 0
		}
		must(t, response.Body.Close())
		return response.StatusCode
	}
	deadline, ticker := time.After(20*time.Second), time.NewTicker(20*time.Millisecond)
	defer ticker.Stop()
	for get("/livez") != http.StatusOK {
		select {
		case <-deadline:
			t.Fatalf("it does not come alive:\n%s", log)
		case <-ticker.C:
		}
	}
	if code := get("/readyz"); code != http.StatusInternalServerError {
		t.Errorf("/readyz: %d, want 500 without an API server", code)
	}
	for path, body := range map[string]string{
		"/admit/granular": reviewHead + oldPart + newPart + end,
		"/authorize":      `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"a","resourceAttributes":{"verb":"update","resource":"configmaps"}}}`,
	} {
		response, err := client.Post(url+path, "application/json", strings.NewReader(body))
		must(t, err)
		var answer bytes.Buffer
		_, err = answer.ReadFrom(response.Body)
		must(t, err)
		must(t, response.Body.Close())
		if strings.Contains(answer.String(), `"allowed":true`) {
			t.Errorf("%s: %s", path, answer.String())
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Errorf("it did not end by itself:\n%s", log)
	}
}

// TestStart_NothingPassesBeforeTheBarriersAreRead: barriers hold from the first answer after a start. API servers call fieldperm as soon as
// it listens, whether it is ready or not.
func TestStart_NothingPassesBeforeTheBarriersAreRead(t *testing.T) {
	s := startOwn(t, stack.Config{})
	install(t, s)
	grant(t, s, "updater", rule("", []string{"configmaps"}, "update", "patch"))
	grant(t, s, "marked", rule("", []string{"configmaps"}, "granular", "granular:datum(k)"))
	mustKubectl(t, s, "", "create", "configmap", "guarded", "--from-literal=k=v")
	apply(t, s, "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: guarded}\nspec: {kind: ConfigMap, permissions: [{path: '.data[\"k\"]', verb: example.com/k, excluded: true}]}\n")
	write := func(user string) func() *corpus.Answer {
		w := wire(t, s, user)
		return func() *corpus.Answer {
			return send(t, w, http.MethodPatch, "/api/v1/namespaces/default/configmaps/guarded", merge, fields(t, `{"data":{"k":"w"}}`), "dryRun=All")
		}
	}
	writes := map[string]func() *corpus.Answer{"updater": write("updater"), "marked": write("marked")}
	for user, write := range writes {
		inForce(t, user, write, 403)
	}
	for range 3 {
		must(t, s.StopWebhook())
		started := make(chan error, 1)
		go func() { started <- s.StartWebhook(t.Context()) }()
		for done := false; !done; {
			for user, write := range writes {
				if answer := write(); answer.Code < 400 {
					t.Errorf("%s passes the barrier: %d", user, answer.Code)
				}
			}
			select {
			case err := <-started:
				must(t, err)
				done = true
			default:
			}
		}
	}
}

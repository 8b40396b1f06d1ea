//go:build integration

package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// admissionConfig writes a static webhook that is called for Secrets only, at a port without a listener.
func admissionConfig(t *testing.T, work string, port int) string {
	t.Helper()
	manifests := filepath.Join(work, "manifests")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, manifests, "closed.yaml", fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: closed.static.k8s.io
webhooks:
- name: closed.static.k8s.io
  clientConfig:
    url: https://127.0.0.1:%d/
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`, port))
	return file(t, work, "admission.yaml", fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    staticManifestsDir: %s
`, manifests))
}

func configMap(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n", name)
}

func file(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	write(t, path, content)
	return path
}

func user(t *testing.T, c *Cluster, name string, groups ...string) *User {
	t.Helper()
	user, err := c.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// startedDir reads the line "started DIR".
func startedDir(t *testing.T, output io.Reader) string {
	t.Helper()
	var seen strings.Builder
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if dir, ok := strings.CutPrefix(scanner.Text(), "started "); ok {
			return dir
		}
		fmt.Fprintln(&seen, scanner.Text())
	}
	t.Fatalf("the program ended before its cluster was ready: %s", seen.String())
	return ""
}

// processes returns the command lines that contain dir. A process that has ended but is not reaped yet has none. It reads /proc if that
// exists, because not every machine with Go has ps.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, line := range lines {
		// The file of a process that has ended in the meantime cannot be read.
		if raw, err := os.ReadFile(line); err == nil {
			all = append(all, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	if len(lines) == 0 {
		output, err := exec.Command("ps", "-axww", "-o", "args=").Output()
		if err != nil {
			t.Fatalf("ps: %v", err)
		}
		all = strings.Split(string(output), "\n")
	}
	return slices.DeleteFunc(all, func(line string) bool { return !strings.Contains(line, dir) })
}

// requireGone waits until the cluster has neither a process nor its directory.
func requireGone(t *testing.T, dir string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		running := processes(t, dir)
		_, err := os.Lstat(dir)
		if len(running) == 0 && os.IsNotExist(err) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("left: processes %q; directory: %v", running, err)
		case <-poll.C:
		}
	}
}

func requireNoClusters(t *testing.T, work string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(work, "fieldperm-cluster-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	if running := processes(t, work); len(running) > 0 {
		t.Errorf("running: %q", running)
	}
}

//go:build integration

package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programs are built once; go keeps them in its cache.
var programs struct {
	mu    sync.Mutex
	paths map[string]string
}

func program(t *testing.T, name string) string {
	t.Helper()
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if path, ok := programs.paths[name]; ok {
		return path
	}
	command := exec.CommandContext(t.Context(), "go", "-C", "tools", "tool", "-n", name)
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, errs.String())
	}
	if programs.paths == nil {
		programs.paths = map[string]string{}
	}
	programs.paths[name] = strings.TrimSpace(string(out))
	return programs.paths[name]
}

// run returns what the program writes, and fails the test if it does not succeed.
func run(t *testing.T, name string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t, name), arguments...)
	home := t.TempDir()
	// Do not use the settings of the user that runs the test.
	command.Env = append(os.Environ(), "HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG=")
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s%s", name, strings.Join(arguments, " "), err, out, errs.String())
	}
	return out
}

const chart = root + "/charts/fieldperm"

// overlay is a folder of config, with the values that make the chart render the same.
type overlay struct {
	name   string
	values []string
}

// overlays are all overlays. The CA of certificates-by-file is made by the test.
func overlays(t *testing.T) []overlay {
	t.Helper()
	out := []overlay{
		{"self-managed", nil},
		{"cert-manager", []string{"--set", "certificates.mode=cert-manager"}},
		{"certificates-by-file", []string{"--set", "certificates.mode=secret", "--set-file", "certificates.caBundle=" + ca}},
		{"managed", []string{"--set", "clientCA.admissionCallers=any"}},
	}
	found, err := filepath.Glob(filepath.Join(root, "config", "*", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, name := range found {
		// An overlay is a kustomization that includes the base.
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\n- ../base\n") || strings.Contains(string(text), "\n- ../self-managed\n") {
			folders++
		}
	}
	if folders != len(out) {
		t.Fatalf("config has %d overlays, the test knows %d: add the new one to it", folders, len(out))
	}
	return out
}

const ca = root + "/generators/testdata/ca.crt"

// kustomize renders an overlay in a copy that has the file of the administrator.
func (o overlay) kustomize(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "config"))); err != nil {
		t.Fatal(err)
	}
	bundle, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "certificates-by-file", "ca.crt"), bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, "kustomize", "build", filepath.Join(dir, o.name))
}

func (o overlay) helm(t *testing.T) []byte {
	t.Helper()
	return run(t, "helm", append([]string{"template", "fieldperm", chart, "--namespace", "fieldperm-system"}, o.values...)...)
}

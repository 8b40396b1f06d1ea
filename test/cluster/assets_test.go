package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAssets_FromVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", dir)
	put(t, dir, "etcd", 0o755)
	put(t, dir, "kubectl", 0o644)

	_, err := Assets()
	requireError(t, err, dir, `lacks "kube-apiserver", "kubectl"`, "unset $KUBEBUILDER_ASSETS", `run "make controlplane"`)

	put(t, dir, "kube-apiserver", 0o755)
	put(t, dir, "kubectl", 0o755)
	got, err := Assets()
	if err != nil || got != dir {
		t.Errorf("Assets() = %q, %v; want %q", got, err, dir)
	}
}

func TestAssets_FromCheckout(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(root, "test", "other")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)

	_, err = Assets()
	requireError(t, err, inner, "not inside a checkout", "set $KUBEBUILDER_ASSETS")

	// The module in between is another one and is ignored.
	write(t, filepath.Join(root, "go.mod"), "module github.com/fieldperm/fieldperm\n\ngo 1.26.0\n")
	write(t, filepath.Join(inner, "go.mod"), "module github.com/fieldperm/fieldperm/test/other\n")
	bin := filepath.Join(root, "bin", "controlplane")
	_, err = Assets()
	requireError(t, err, bin, `lacks "kube-apiserver", "etcd", "kubectl"`, `run "make controlplane"`)

	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		put(t, bin, name, 0o755)
	}
	got, err := Assets()
	if err != nil || got != bin {
		t.Errorf("Assets() = %q, %v; want %q", got, err, bin)
	}
}

func put(t *testing.T, dir, name string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	write(t, path, "")
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func requireError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

//go:build controllers

package thirdparty

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// module returns the directory of a Go module that a folder of ../modules requires.
func module(t *testing.T, folder, path string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join("..", "modules", folder)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go mod download %s: %v\n%s", path, err, out)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path)
	list.Dir, list.Env = cmd.Dir, cmd.Env
	out, err := list.Output()
	trial.Must(t, err)
	return strings.TrimSpace(string(out))
}

// program returns the path of a program that ../modules/build.sh has built.
func program(t *testing.T, name string) string {
	t.Helper()
	return trial.Root(t, "bin", "controllers", name)
}

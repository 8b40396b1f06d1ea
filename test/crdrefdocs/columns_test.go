//go:build integration

package crdrefdocs

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fieldperm/fieldperm/internal/generate"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// TestColumnOfVerbs writes the configuration and the templates, runs the program with them, and compares the page.
func TestColumnOfVerbs(t *testing.T) {
	dir := t.TempDir()
	command := generate.NewCommand()
	command.SetArgs([]string{"refdocs", "--format", "crd-ref-docs", "--out", dir, "--only", "example.com", "--crd", filepath.Join("testdata", "widgets.yaml")})
	if code := generate.Run(command); code != 0 {
		t.Fatalf("exit %d", code)
	}
	page := filepath.Join(dir, "api.md")
	//nolint:gosec // The arguments are those of the test.
	run := exec.CommandContext(t.Context(), "go", "-C", "tools", "tool", "crd-ref-docs", "--renderer", "markdown", "--log-level", "ERROR",
		"--source-path", "sample", "--config", filepath.Join(dir, "config.yaml"), "--templates-dir", filepath.Join(dir, "templates"), "--output-path", page)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	got, err := os.ReadFile(page) //nolint:gosec // The test has made the file.
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "api.md")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the page differs:\n%s", got)
	}
}

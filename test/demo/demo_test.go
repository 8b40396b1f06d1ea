//go:build integration

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo plays all stories. It removes everything that it created.
func TestDemo(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	name := filepath.Join(t.TempDir(), "output")
	output, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	code := run(t.Context(), false, newPrinter(output))
	said, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if last := lines[len(lines)-1]; code != 0 || !strings.HasPrefix(last, "demo: ") || strings.Contains(string(said), "\x1b") {
		t.Errorf("exit code %d, want 0 and no colours in a file:\n%s", code, said)
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

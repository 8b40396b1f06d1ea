//go:build integration

package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If fieldperm does not start, the error has its log, and no process or file remains.
func TestStart_ShowsTheLogOfTheFailedProgram(t *testing.T) {
	temporary, bin := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	generator, err := filepath.Abs(filepath.Join("..", "..", "bin", "fieldperm-gen"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(generator, filepath.Join(bin, "fieldperm-gen")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "fieldperm-webhook"), []byte("#!/bin/sh\necho the dog ate it\nexit 1\n"), 0o700); err != nil { //nolint:gosec // It is run.
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Config{Bin: bin})
	if err == nil {
		_ = s.Stop()
		t.Fatal("no error")
	}
	for _, part := range []string{"fieldperm-webhook: is not ready", "it has ended", "the dog ate it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

package process

import (
	"os"
	"path/filepath"
	"testing"
)

// An open file is one more file of the process, and a process has a thread at least.
func TestFilesAndThreads(t *testing.T) {
	before, err := Files(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if after, err := Files(os.Getpid()); err != nil || after <= before {
		t.Errorf("%d files, and %d before: %v", after, before, err)
	}
	if threads, err := Threads(os.Getpid()); err != nil || threads < 1 {
		t.Errorf("%d threads: %v", threads, err)
	}
	if _, err := Files(0); err == nil {
		t.Error("a process that is not there has files")
	}
}

package generators

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// golden compares files with the contents of dir, which must hold no other files.
func golden(t *testing.T, dir string, files []File) {
	t.Helper()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name)
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v: run go test -update", err)
			continue
		}
		if !bytes.Equal(file.Data, want) {
			t.Errorf("%s differs: run go test -update and look at the difference; it is now\n%s", path, file.Data)
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && !slices.Contains(names, filepath.ToSlash(name)) {
			t.Errorf("stray golden file %s: nothing generates it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// read returns a file of testdata.
func read(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

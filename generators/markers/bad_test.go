package markers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/fieldperm/fieldperm/internal/lint/convention"
)

func builtIn(t *testing.T) *convention.Registry {
	t.Helper()
	registry, err := convention.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// TestCRDs_BadInput: each directory of testdata/bad has a mistake. No marker is silently ignored, and no file is written.
func TestCRDs_BadInput(t *testing.T) {
	entries, err := os.ReadDir("testdata/bad")
	if err != nil {
		t.Fatal(err)
	}
	stray, err := filepath.Glob("testdata/golden/bad/*.txt")
	if err != nil || len(stray) != len(entries) && !*update {
		t.Errorf("%d golden files for %d directories: %v", len(stray), len(entries), err)
	}
	all := roots(t, "./testdata/bad/...")
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			dir := "/testdata/bad/" + entry.Name()
			own := slices.DeleteFunc(slices.Clone(all), func(p *loader.Package) bool {
				return !strings.HasSuffix(p.PkgPath, dir) && !strings.Contains(p.PkgPath, dir+"/")
			})
			ctx, _ := runtime(t, crd.Generator{}, own)
			files, errs := CRDs(ctx, Generator{Form: Deployable, Registry: builtIn(t)})
			if len(errs) == 0 || files != nil {
				t.Errorf("%d files and no error", len(files))
			}
			golden(t, filepath.Join("golden", "bad", entry.Name()+".txt"), lines(t, errs))
		})
	}
}

package openapi

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/generators/markers"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func read(t *testing.T, paths ...string) *markers.Set {
	t.Helper()
	roots, err := markers.Load("", nil, paths...)
	if err != nil {
		t.Fatal(err)
	}
	set, errs := markers.Read(roots)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return set
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// TestG5_EveryMarkerIsInADefinition: of named types, of inline structs, of types that are declared from others.
func TestG5_EveryMarkerIsInADefinition(t *testing.T) {
	permissions, errs := Permissions(read(t, "./testdata/good"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	out, err := Render("good", permissions)
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := bytes.Cut(out, []byte("var permissionVerbs"))
	golden(t, "good.golden", list)
}

// TestG5_AMarkerInNoDefinitionIsAnError: an author would rely on a barrier that no server publishes.
func TestG5_AMarkerInNoDefinitionIsAnError(t *testing.T) {
	_, errs := Permissions(read(t, "./testdata/bad"))
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, err := range errs {
		out.WriteString(strings.ReplaceAll(err.Error(), wd+string(filepath.Separator), "") + "\n")
	}
	golden(t, "bad.golden", []byte(out.String()))
}

// TestG5_APackageAmongThePathsIsNoOther: with both packages among the paths, what is in another package is in a definition.
func TestG5_APackageAmongThePathsIsNoOther(t *testing.T) {
	_, errs := Permissions(read(t, "./testdata/bad/..."))
	for _, err := range errs {
		if strings.Contains(err.Error(), "add the package to them") {
			t.Error(err)
		}
	}
}

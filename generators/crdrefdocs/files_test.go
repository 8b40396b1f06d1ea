package crdrefdocs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func compiled(t *testing.T) *schema.Schema {
	t.Helper()
	documents, errs := load.Files([]string{filepath.Join("testdata", "gadgets.yaml")})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return schematest.Compile(t, compile.Documents{Permissions: schematest.Documents(t).Permissions, Traced: true}.Append(documents))
}

// TestFiles_Golden: each verb of the definition is in the configuration and the template, with its parameter and its barriers, and no verb of
// the catalogue.
func TestFiles_Golden(t *testing.T) {
	files, err := Files(compiled(t), []string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files[:2] {
		golden := filepath.Join("testdata", filepath.Base(f.Name))
		if *update {
			if err := os.WriteFile(golden, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden) //nolint:gosec // A file of the test.
		if err != nil {
			t.Fatal(err)
		}
		if string(f.Data) != string(want) {
			t.Errorf("%s differs:\n%s", f.Name, f.Data)
		}
	}
	if len(files) != 6 || files[2].Name != "templates/gv_details.tpl" {
		t.Errorf("%d files, %q", len(files), files[2].Name)
	}
}

func TestFiles_WithoutVerbs(t *testing.T) {
	if _, err := Files(compiled(t), []string{"other.example.com"}); err == nil || !strings.Contains(err.Error(), "give definitions with permission verbs") {
		t.Error(err)
	}
}

package generate

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	plainTypes = "../../test/aggregated/plain/v1"
	badTypes   = "../../generators/openapi/testdata/bad"
)

// TestOpenAPI: the file goes into the package of openapi-gen's, and --check finds a stale one without writing.
func TestOpenAPI(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := run(t, "", "openapi", "paths="+plainTypes, "--output-dir", dir); code != 1 || !strings.Contains(stderr, "has no Go file: run openapi-gen first") {
		t.Errorf("without openapi-gen's file: exit %d, %q", code, stderr)
	}
	save(t, dir, "zz_generated.openapi.go", "package schemas\n")
	path := filepath.Join(dir, "zz_generated.permissions.go")
	if code, _, stderr := run(t, "", "openapi", "paths="+plainTypes, "--output-dir", dir, "--check"); code != 1 || !strings.Contains(stderr, "is not what the markers say: run") {
		t.Errorf("--check without a file: exit %d, %q", code, stderr)
	}
	if code, stdout, stderr := run(t, "", "openapi", "paths="+plainTypes, "--output-dir", dir); code != 0 || stdout+stderr != "" {
		t.Fatalf("exit %d, %q %q", code, stdout, stderr)
	}
	first := content(t, path)
	if !strings.Contains(first, "package schemas\n") || !strings.Contains(first, `"brewery.example.com/recall"`) {
		t.Errorf("wrote %s", first)
	}
	if committed := content(t, "../../test/aggregated/plain/openapi/zz_generated.permissions.go"); strings.Replace(first, "package schemas", "package openapi", 1) != committed {
		t.Error("the file of test/aggregated/plain is stale: run make generate")
	}
	if code, _, stderr := run(t, "", "openapi", "paths="+plainTypes, "--output-dir", dir, "--check"); code != 0 || stderr != "" {
		t.Errorf("--check: exit %d, %q", code, stderr)
	}
	save(t, dir, "zz_generated.permissions.go", strings.Replace(first, "recall", "other", 1))
	stale := content(t, path)
	if code, _, stderr := run(t, "", "openapi", "paths="+plainTypes, "--output-dir", dir, "--check"); code != 1 || !strings.Contains(stderr, "is not what the markers say") || content(t, path) != stale {
		t.Errorf("--check of a stale file: exit %d, %q", code, stderr)
	}
}

// TestOpenAPI_Mistakes: nothing is written after a mistake, and each has a cure.
func TestOpenAPI_Mistakes(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "doc.go", "package schemas\n")
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no paths", []string{"--output-dir", dir}, "paths is missing"},
		{"no directory", []string{"paths=" + plainTypes}, "--output-dir is missing"},
		{"an unknown argument", []string{"path=./v1", "--output-dir", dir}, `argument "path=./v1": is not known`},
		{"no marker", []string{"paths=../../test/aggregated/server", "--output-dir", dir}, "have no permission marker"},
		{"a marker without a place", []string{"paths=" + badTypes, "--output-dir", dir}, `types.go:28:4: marker "+permission-verb" is above the type Base`},
		{"no package", []string{"paths=./nowhere/...", "--output-dir", dir}, "nowhere"},
	} {
		code, _, stderr := run(t, "", append([]string{"openapi"}, test.args...)...)
		if code != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit %d, %q, want %q", test.name, code, stderr, test.want)
		}
		if matches, _ := filepath.Glob(filepath.Join(dir, "zz_*")); len(matches) > 0 {
			t.Errorf("%s: wrote %v", test.name, matches)
		}
	}
}

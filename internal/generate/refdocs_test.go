package generate

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRefdocs(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "new", "reference")
	code, stdout, stderr := run(t, "", "refdocs", "--out", out, "--permission-schemas", save(t, dir, "mice.yaml", widgets))
	if code != 0 || stdout != "" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	for name, want := range map[string]string{
		"kinds.md": "### Mouse.example.com\n",
		"verbs.md": "| `granular:example.com/size` | `.size` Mouse.example.com (barrier) |",
	} {
		if page := content(t, out, name); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
}

func TestRefdocs_Errors(t *testing.T) {
	dir := t.TempDir()
	bad := save(t, dir, "bad.yaml", strings.ReplaceAll(widgets, "verb: example.com/size", "verb: example.com/Size"))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no --out":      {nil, "--out is missing: name the directory"},
		"argument":      {[]string{"x"}, `argument "x"`},
		"missing file":  {[]string{"--out", dir, "--permission-schemas", filepath.Join(dir, "none")}, "cannot be read"},
		"faulty schema": {[]string{"--out", filepath.Join(dir, "never"), "--permission-schemas", bad}, bad + ":/spec/versions/0/"},
		"out is a file": {[]string{"--out", bad}, "--out: "},
	} {
		code, stdout, stderr := run(t, "", append([]string{"refdocs"}, test.args...)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit %d, %q, %q", name, code, stdout, stderr)
		}
	}
}

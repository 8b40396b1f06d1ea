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

// TestRefdocs_Only: an author gets the author's kinds, in each format.
func TestRefdocs_Only(t *testing.T) {
	dir := t.TempDir()
	mice := save(t, dir, "mice.yaml", widgets)
	for name, c := range map[string]struct {
		args       []string
		file       string
		want, lack []string
	}{
		"markdown":     {[]string{"--crd", mice, "--only", "example.com"}, "kinds.md", []string{"### Mouse.example.com\n", "## Every kind\n", "](https://github.com/fieldperm/fieldperm/blob/main/docs/reference/powers.md)"}, []string{"Deployment"}},
		"core":         {[]string{"--only", "core"}, "kinds.md", []string{"### Pod\n"}, []string{"Deployment.apps"}},
		"HTML":         {[]string{"--crd", mice, "--only", "example.com", "--format", "html"}, "verbs.html", []string{"Verbs of example.com", `"kind":"Mouse"`}, []string{`"kind":"Deployment"`}},
		"every kind":   {[]string{"--format", "html"}, "verbs.html", []string{"Verbs of all kinds", `"kind":"Deployment"`}, nil},
		"crd-ref-docs": {[]string{"--crd", mice, "--only", "example.com", "--format", "crd-ref-docs"}, "config.yaml", []string{"permission-verb:example.com/size"}, []string{"permission-verb:labels"}},
		"OpenAPI":      {[]string{"--openapi", "../../schema/load/testdata/fischers.openapi.json", "--only", "sea.example.com"}, "kinds.md", []string{"### Fischer.sea.example.com\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			code, stdout, stderr := run(t, "", append([]string{"refdocs", "--out", out}, c.args...)...)
			if code != 0 || stdout != "" || stderr != "" {
				t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
			}
			text := content(t, out, c.file)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, lack := range c.lack {
				if strings.Contains(text, lack) {
					t.Errorf("has %q", lack)
				}
			}
		})
	}
}

func TestRefdocs_FlagErrors(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown format":     {[]string{"--format", "pdf"}, `--format "pdf": does not exist: use markdown, html or crd-ref-docs`},
		"unknown group":      {[]string{"--only", "app"}, `--only "app": no kind is of this group: use "apps"`},
		"powers of some":     {[]string{"--only", "apps", "--powers", "x.md"}, "leave out --format and --only"},
		"no OpenAPI":         {[]string{"--openapi", save(t, dir, "a.json", "[]")}, "no OpenAPI v3 document"},
		"OpenAPI of nothing": {[]string{"--openapi", save(t, dir, "b.json", `{"openapi": "3.0.0"}`)}, "describes no kind"},
		"no OpenAPI file":    {[]string{"--openapi", filepath.Join(dir, "none")}, "--openapi: cannot be read"},
		"no verbs":           {[]string{"--format", "crd-ref-docs", "--only", "apps"}, "give definitions with permission verbs"},
	} {
		code, _, stderr := run(t, "", append([]string{"refdocs", "--out", dir}, c.args...)...)
		if code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %q", name, code, stderr)
		}
	}
}

// TestRefdocs_AKindThatIsNotGiven: a catalogue of a project may be about more kinds than are installed.
func TestRefdocs_AKindThatIsNotGiven(t *testing.T) {
	dir := t.TempDir()
	extra := save(t, dir, "extra.yaml", "# A schema.\n{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: x}, spec: {group: nothing.example.com, kind: Nothing, permissions: [{path: .spec.a, verb: example.com/a}]}}\n")
	code, _, stderr := run(t, "", "refdocs", "--out", dir, "--permission-schemas", extra)
	if code != 0 || !strings.Contains(stderr, "warning: "+extra) {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

package generate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiV1 are the Go types of generators/markers' tests.
const apiV1 = "../../generators/markers/testdata/api/v1"

func TestCRD_FromTypes(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := run(t, "", "crd", "paths="+apiV1, "crd:maxDescLen=0", "output:crd:dir="+dir, "rbac:roleName=none", "output:rbac:none")
	if code != 0 || stdout != "" || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 2 {
		t.Errorf("the files are %q: %v", names, err)
	}
	inFile := content(t, dir, "example.com_gadgets.yaml")
	if !strings.Contains(inFile, "    fieldperm.dev/permission-verbs: '{\"v1\":[{") || strings.Contains(inFile, "x-kubernetes-permission") {
		t.Errorf("the definition is %.500s", inFile)
	}

	// --in of the annotated form gives the same annotation.
	code, annotated, stderr := run(t, "", "crd", "--form=annotated", "paths="+apiV1, "crd:maxDescLen=0", "output:stdout")
	if code != 0 || stderr != "" || !strings.Contains(annotated, "x-kubernetes-permission-excluded: true") || strings.Contains(annotated, "fieldperm.dev/permission-verbs") {
		t.Fatalf("exit %d, %q, %.300s", code, stderr, annotated)
	}
	first := strings.Split(annotated, "\n---\n")[0] + "\n"
	code, converted, stderr := run(t, first, "crd", "--in=-")
	if got, want := annotation(converted), annotation(inFile); code != 0 || got == "" || got != want {
		t.Errorf("exit %d, %q: the annotation is %s, want %s", code, stderr, got, want)
	}
}

// annotation returns the annotation without line breaks and spaces, which the two writers of YAML set differently.
func annotation(definition string) string {
	_, text, _ := strings.Cut(definition, "permission-verbs: ")
	text, _, _ = strings.Cut(text, "}]}'")
	return strings.Join(strings.Fields(text), "")
}

func TestCRD_ErrorsOfTypesAreFoundInOneRun(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := run(t, "", "crd", "paths=../../generators/markers/testdata/places", "output:dir="+dir)
	if code != 1 || stdout != "" || strings.Count(stderr, "error: ") < 20 {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files were written in spite of errors: %v", len(left), err)
	}
}

func TestCRD_ArgumentsNameTheCure(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no paths":        {[]string{"object"}, []string{"paths= is missing: name Go packages"}},
		"empty paths":     {[]string{"paths="}, []string{"paths= is missing: name Go packages"}},
		"empty":           {[]string{""}, []string{`argument "": is unknown`}},
		"misspelt":        {[]string{"path=./x"}, []string{`argument "path=./x": is unknown: write paths: see`}},
		"a file":          {[]string{"widgets.yaml"}, []string{"name a definition with --in widgets.yaml"}},
		"elsewhere":       {[]string{"paths=.", "applyconfiguration"}, []string{"run controller-gen for it"}},
		"bad option":      {[]string{"paths=" + apiV1, "crd:maxDescLen=x"}, []string{"maxDescLen", `see "fieldperm-gen crd --help"`}},
		"unknown option":  {[]string{"paths=" + apiV1, "crd:nope=1"}, []string{"nope"}},
		"both":            {[]string{"paths=.", "--in=x"}, []string{"give one of paths= and --in"}},
		"out":             {[]string{"paths=.", "--out=x"}, []string{"--out has no meaning with paths="}},
		"form":            {[]string{"paths=.", "--form=short"}, []string{`--form "short": is unknown: use deployable or annotated`}},
		"form of in":      {[]string{"--in=x", "--form=annotated"}, []string{"--form has no meaning with --in"}},
		"no such package": {[]string{"paths=./none"}, []string{"paths=./none: ", "name directories with Go packages"}},
		"no marker":       {[]string{"paths=../../api/v1alpha1"}, []string{"paths=../../api/v1alpha1: no permission marker in the kinds of packages github.com/fieldperm/fieldperm/api/v1alpha1"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, "", append([]string{"crd"}, c.args...)...)
			if code != 1 || stdout != "" || !strings.HasPrefix(stderr, "error: ") {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			if slices.ContainsFunc(c.want, func(want string) bool { return !strings.Contains(stderr, want) }) {
				t.Errorf("stderr is %q, want %q", stderr, c.want)
			}
		})
	}
}

// TestCRD_WhatExceedsTheLimit: the second file lies beside the first, or comes before it in the standard output.
func TestCRD_WhatExceedsTheLimit(t *testing.T) {
	dir := t.TempDir()
	var many strings.Builder
	for i := range 5000 {
		many.WriteString(strings.ReplaceAll("          field#: {type: string, x-kubernetes-permission-verb: example.com/aVerbWithALongName}\n", "#", strings.Repeat("x", i%50)+string(rune('a'+i%26))+strings.Repeat("y", i/50)))
	}
	in, out := save(t, dir, "in.yaml", widgets+many.String()), filepath.Join(dir, "out.yaml")
	code, stdout, stderr := run(t, "", "crd", "--in", in, "--out", out)
	if code != 0 || stdout != "" || !strings.HasPrefix(stderr, "warning: "+in+": ") || strings.Count(stderr, "\n") != 1 {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	definition, permissions := content(t, out), content(t, dir, "example.com_mice.permissions.yaml")
	if strings.Contains(definition, "permission-verbs") || strings.Count(permissions, "kind: PermissionSchema\n") < 10 {
		t.Error("the files do not have what they should")
	}
	if code, both, _ := run(t, "", "crd", "--in", in); code != 0 || both != permissions+"---\n"+definition {
		t.Errorf("exit %d, the standard output does not have both files", code)
	}
}

package markers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// TestCRDs_WhatExceedsTheAnnotationBecomesPermissionSchemas: all of it, so that neither file looks like the whole without the other.
func TestCRDs_WhatExceedsTheAnnotationBecomesPermissionSchemas(t *testing.T) {
	const fields = 1100
	var b bytes.Buffer
	b.WriteString("// +groupName=example.com\npackage v1\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n// +kubebuilder:object:root=true\n\ntype Gadget struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec Fields `json:\"spec\"`\n}\n\n// +permission-parameter-source:\"team\"\ntype Team string\n\ntype Fields struct {\n")
	for i := range fields {
		fmt.Fprintf(&b, "\t// +permission-verb:\"example.com/aVerbWithALongName%d\"\n\t// +permission-excluded-when:\"self == '%s'\"\n\tField%d string `json:\"field%d\"`\n", i, strings.Repeat("x", 200), i, i)
	}
	b.WriteString("\t// +permission-verb:\"example.com/teams\"\n\tTeams map[Team]Budget `json:\"teams\"`\n}\n\n// +permission-verb:\"example.com/budget\"\n// +permission-parameterized-by:\"team\"\ntype Budget string\n")
	ctx, _ := runtime(t, crd.Generator{}, module(t, b.String()))
	files, errs := CRDs(ctx, Generator{Form: Deployable})
	if len(errs) > 0 {
		t.Fatal(lines(t, errs))
	}
	if len(files) != 1 || files[0].Permissions == nil || bytes.Contains(files[0].CRD.Data, []byte("fieldperm.dev/permission-verbs")) {
		t.Fatalf("the definition has an annotation, or there is no file of permissions: %.300s", files[0].CRD.Data)
	}
	if got := files[0].Permissions.Name; got != "example.com_gadgets.permissions.yaml" {
		t.Errorf("the file is %q", got)
	}
	if want := "install both files"; !strings.Contains(files[0].Warning(), want) {
		t.Errorf("the warning is %q", files[0].Warning())
	}
	docs, errs := load.Decode("permissions", files[0].Permissions.Data)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	definition, errs := load.Decode("definition", files[0].CRD.Data)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	entries := 0
	for _, d := range docs.Permissions {
		if len(d.Entries) > 512 {
			t.Errorf("a PermissionSchema has %d entries", len(d.Entries))
		}
		entries += len(d.Entries)
	}
	if want := fields + 2; entries != want {
		t.Errorf("%d entries in %d PermissionSchemas, want %d", entries, len(docs.Permissions), want)
	}
	if _, errs := compile.Compile(definition.Append(docs)); len(errs) > 0 {
		t.Error(errs)
	}
}

// module loads a package in a module of its own, as an author's is, with the dependencies of this one.
func module(t *testing.T, source string) []*loader.Package {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.Replace(raw, []byte("module github.com/fieldperm/fieldperm\n"), []byte("module example.com/gadgets\n"), 1)
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "types.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := Load(dir, nil, "./...")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCRDs_APackageThatDoesNotParse: its markers are not known, so there is no definition.
func TestCRDs_APackageThatDoesNotParse(t *testing.T) {
	ctx, _ := runtime(t, crd.Generator{}, module(t, "package v1\n\ntype Spec struct {\n\t// +permission-verb:\"example.com/color\"\n\tColor string `json:\"color\n}\n"))
	files, errs := CRDs(ctx, Generator{Form: Deployable})
	if files != nil || len(errs) == 0 || !strings.Contains(lines(t, errs), "types.go:5:15: raw string literal not terminated") {
		t.Errorf("%d files, errors %s", len(files), lines(t, errs))
	}
}

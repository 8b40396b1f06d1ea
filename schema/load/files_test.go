package load

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFiles_DirectoriesInOrder(t *testing.T) {
	dir := t.TempDir()
	entry := deploymentHead + "  - {path: .spec.paused, verb: a}\n"
	for _, name := range []string{"b.yml", "a.yaml", "sub/c.yaml", "notes.txt", "d.json"} {
		text := entry
		if name == "d.json" {
			text = `{"apiVersion":"v1","kind":"List","items":[]}`
		}
		write(t, filepath.Join(dir, name), text)
	}
	// The directory has the layout of a mounted ConfigMap.
	if err := os.Symlink(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	docs, errs := Files([]string{dir, filepath.Join(dir, "notes.txt")})
	noErrors(t, errs)
	var got []string
	for _, d := range docs.Permissions {
		got = append(got, filepath.Base(d.Source))
	}
	want := []string{"a.yaml", "b.yml", "link.yaml", "notes.txt"}
	if len(got) != len(want) {
		t.Fatalf("files %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("files %q, want %q", got, want)
		}
	}
}

func TestFiles_GoesOnAfterAnError(t *testing.T) {
	dir := t.TempDir()
	bad, good, missing := filepath.Join(dir, "bad.yaml"), filepath.Join(dir, "good.yaml"), filepath.Join(dir, "missing.yaml")
	write(t, bad, "a: [\n")
	write(t, good, deploymentHead+"  - {path: .spec.paused, verb: a}\n")
	docs, errs := Files([]string{missing, bad, good})
	wantFaults(t, errs, missing+":: ", "cannot be read", "give a file or a directory")
	wantFaults(t, errs, bad+":", "no YAML or JSON")
	if len(docs.Permissions) != 1 {
		t.Errorf("documents %+v", docs.Permissions)
	}
}

func TestOffline(t *testing.T) {
	compiled, errs := Offline([]string{"testdata/permissions.yaml", "testdata/widgets.crd.yaml"})
	noErrors(t, errs)
	if got := verbsOf(node(t, compiled, gvk("apps", "v1", "Deployment"), "spec", "paused")); got != "granular:example.com/pause" {
		t.Errorf("verbs %q: the administrator's entry does not win over the catalogue", got)
	}
	if got := verbsOf(node(t, compiled, gvk("example.com", "v1", "Widget"), "spec", "replicas")); got != "granular:scale" {
		t.Errorf("verbs %q", got)
	}
	pause, err := verbs.Parse("granular:example.com/pause")
	if err != nil {
		t.Fatal(err)
	}
	uncovered, err := compiled.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Resource: "deployments"}, nil)
	if err != nil || !uncovered.Has(pause) {
		t.Errorf("uncovered %v, error %v", uncovered, err)
	}
}

func TestOffline_ReportsFaults(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.yaml"), deploymentHead+"  - {path: .spec.nowhere, verb: a}\n")
	_, errs := Offline([]string{dir})
	wantFaults(t, errs, filepath.Join(dir, "x.yaml")+":/spec/permissions/0: ", ".spec.nowhere")
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i, file := range []string{"a.yaml", "b.yml", "c.json", "README.md", "sub/d.yaml"} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
		if i < 3 {
			want = append(want, path)
		}
	}
	if got, err := Paths(dir); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("directory: got %q %v, want %q", got, err, want)
	}
	readme := filepath.Join(dir, "README.md")
	if got, err := Paths(readme); err != nil || !reflect.DeepEqual(got, []string{readme}) {
		t.Errorf("file that is named: got %q %v", got, err)
	}
	if got, err := Paths(filepath.Join(dir, "none")); err == nil {
		t.Errorf("missing: got %q, want an error", got)
	}
}

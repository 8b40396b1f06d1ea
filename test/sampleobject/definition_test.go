package sampleobject

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// A5: an object for a difficult schema is found in a short time. The integration test checks that the API server accepts it.
func TestA5_NastyDefinitions(t *testing.T) {
	for _, file := range allDefinitions(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			definition, gvk := readDefinition(t, file)
			began := time.Now()
			got := object(t, gvk, definition)
			encoded, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("after %s:\n%s", time.Since(began), encoded)
		})
	}
}

// allDefinitions returns the difficult definitions, those of the tests' corpus and fieldperm's own.
func allDefinitions(t *testing.T) []string {
	t.Helper()
	files := definitions(t, "possible")
	for _, pattern := range []string{"../../../testdata/shared/crds/*.yaml", "../../../config/crd/*.yaml"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range more {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "kind: CustomResourceDefinition") {
				files = append(files, file)
			}
		}
	}
	return slices.Compact(files)
}

// A5: if no object can be made, the error names the field. The result is never an invalid object. The first word of the file's
// comment is the field.
func TestA5_ImpossibleDefinitions(t *testing.T) {
	for _, file := range definitions(t, "impossible") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		field, _, _ := strings.Cut(strings.TrimPrefix(string(content), "# "), ":")
		definition, gvk := readDefinition(t, file)
		got, err := New(gvk, definition)
		switch {
		case err == nil:
			t.Errorf("%s: %v; want an error", file, got)
		case !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "no valid value was found"):
			t.Errorf("%s: error %q lacks %q", file, err, field)
		}
	}
}

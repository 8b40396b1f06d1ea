package docs

import (
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/lint/convention"
)

// isRegistry reports whether the example is a file of well-known verbs, which is no object of a cluster.
func isRegistry(text string) bool {
	return strings.Contains(text, "\nkind: "+convention.RegistryKind+"\n")
}

// Examples of files of well-known verbs are read without a fault.
func TestExamples_RegistriesDecode(t *testing.T) {
	seen := 0
	for _, example := range guides(t) {
		if !isRegistry(example.text) {
			continue
		}
		seen++
		builtIn, err := convention.BuiltIn()
		if err != nil {
			t.Fatal(err)
		}
		if _, errs := builtIn.Decode(example.source, []byte(example.text)); len(errs) > 0 {
			t.Error(errs)
		}
	}
	if seen == 0 {
		t.Error("no page has a file of well-known verbs")
	}
}

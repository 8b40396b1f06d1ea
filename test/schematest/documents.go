package schematest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// Documents returns the built-in kinds, their catalogue, and YAML documents, whose sources are doc0, doc1 and so on.
func Documents(t testing.TB, texts ...string) compile.Documents {
	t.Helper()
	out, errs := decode(texts)
	noFaults(t, errs)
	return out
}

// Decode returns only the YAML documents. Their source is in errors.
func Decode(t testing.TB, source string, texts ...string) compile.Documents {
	t.Helper()
	var out compile.Documents
	for _, text := range texts {
		more, errs := load.Decode(source, []byte(text))
		noFaults(t, errs)
		out = out.Append(more)
	}
	return out
}

// Only returns documents with some of the built-in kinds, in all their versions. Entries for the other kinds are faults of a compile.
func Only(documents compile.Documents, kinds ...string) compile.Documents {
	out := documents.Append()
	for i := range out.Topologies {
		of := &out.Topologies[i]
		if !of.RoundTrips {
			continue // A definition of the test.
		}
		of.Kinds = maps.Clone(of.Kinds)
		maps.DeleteFunc(of.Kinds, func(kind runtimeschema.GroupVersionKind, _ string) bool { return !slices.Contains(kinds, kind.Kind) })
	}
	return out
}

// decode joins the built-in documents, which schema/load reads once, and texts.
func decode(texts []string) (compile.Documents, []error) {
	kinds, err := load.BuiltIn()
	if err != nil {
		return compile.Documents{}, []error{err}
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		return compile.Documents{}, []error{err}
	}
	out := compile.Documents{Topologies: []compile.Topology{kinds}, Permissions: catalogue}
	for i, text := range texts {
		more, errs := load.Decode(fmt.Sprintf("doc%d", i), []byte(text))
		if len(errs) > 0 {
			return compile.Documents{}, errs
		}
		out = out.Append(more)
	}
	return out, nil
}

// File returns the text of a file.
func File(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

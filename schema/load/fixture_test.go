package load

import (
	"fmt"
	"testing"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// test/schematest has the same for the packages that this one does not import.

// documentsOf returns the built-in kinds, the catalogue, and documents, whose sources are d0.yaml, d1.yaml and so on.
func documentsOf(t *testing.T, texts ...string) compile.Documents {
	t.Helper()
	out, errs := builtInDocuments()
	noErrors(t, errs)
	for i, text := range texts {
		more, errs := Decode(fmt.Sprintf("d%d.yaml", i), []byte(text))
		noErrors(t, errs)
		out = out.Append(more)
	}
	return out
}

func compileDocuments(t *testing.T, documents compile.Documents) *schema.Schema {
	t.Helper()
	out, _, errs := schemacheck.Compile(documents)
	noErrors(t, errs)
	return out
}

// compileAll compiles documents with the built-in kinds and the catalogue.
func compileAll(t *testing.T, texts ...string) (*schema.Schema, []error) {
	t.Helper()
	out, _, errs := schemacheck.Compile(documentsOf(t, texts...))
	return out, errs
}

// compileBuiltIn is compileAll for documents without faults.
func compileBuiltIn(t *testing.T, texts ...string) *schema.Schema {
	t.Helper()
	return compileDocuments(t, documentsOf(t, texts...))
}

// compileWith is compileBuiltIn for decoded documents.
func compileWith(t *testing.T, documents compile.Documents) *schema.Schema {
	t.Helper()
	return compileDocuments(t, documentsOf(t).Append(documents))
}

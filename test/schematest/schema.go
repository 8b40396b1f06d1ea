package schematest

import (
	"strings"
	"sync"
	"testing"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// Schema returns the built-in kinds with their catalogue and YAML documents, compiled once per process. Faults fail the test.
func Schema(t testing.TB, texts ...string) *schema.Schema {
	t.Helper()
	return shared(t, false, texts)
}

// Traced is Schema with the origins of permissions (compile.Documents.Traced).
func Traced(t testing.TB, texts ...string) *schema.Schema {
	t.Helper()
	return shared(t, true, texts)
}

// Compile compiles documents. Faults fail the test.
func Compile(t testing.TB, documents compile.Documents) *schema.Schema {
	t.Helper()
	out, _, errs := schemacheck.Compile(documents)
	noFaults(t, errs)
	return out
}

// compiled are the schemas of this process: functions that compile once, by identity.
var compiled sync.Map

// identity is what a shared schema is made from: its texts, each with a zero byte after it.
type identity struct {
	isTraced bool
	texts    string
}

func shared(t testing.TB, isTraced bool, texts []string) *schema.Schema {
	t.Helper()
	once, _ := compiled.LoadOrStore(identity{isTraced, strings.Join(append(texts, ""), "\x00")}, sync.OnceValues(func() (*schema.Schema, []error) {
		documents, errs := decode(texts)
		if len(errs) > 0 {
			return nil, errs
		}
		documents.Traced = isTraced
		out, _, errs := schemacheck.Compile(documents)
		return out, errs
	}))
	out, errs := once.(func() (*schema.Schema, []error))()
	noFaults(t, errs)
	return out
}

func noFaults(t testing.TB, errs []error) {
	t.Helper()
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 {
		t.FailNow()
	}
}

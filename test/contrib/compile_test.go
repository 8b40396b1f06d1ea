package contrib

import (
	"errors"
	"testing"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestContrib_CompilesWithoutWarnings: every path, parameter and kind of a catalogue exists in the definitions of the project, in the version
// that was reviewed and in those that it was tried with.
func TestContrib_CompilesWithoutWarnings(t *testing.T) {
	for _, p := range readProjects(t) {
		for round := range p.rounds() {
			for _, variant := range p.Variants {
				t.Run(p.title(round, variant), func(t *testing.T) {
					if p.skipped(round) {
						t.Skip("a large download: give -args -large")
					}
					_, errs := p.compile(t, p.definitions(t, round, variant))
					for _, err := range errs {
						if !p.isByHand(err) {
							t.Error(err)
						}
					}
				})
			}
		}
	}
}

// TestContrib_WithoutDefinitionsIsHarmless: a catalogue of a project that is not installed touches no kind. Its objects are Unmatched.
func TestContrib_WithoutDefinitionsIsHarmless(t *testing.T) {
	for _, p := range readProjects(t) {
		compiled, errs := p.compile(t, nil)
		if len(errs) != len(p.schemas(t)) {
			t.Errorf("%s: %d errors, want one for each of %d objects", p.File, len(errs), len(p.schemas(t)))
		}
		for _, err := range errs {
			if !unmatched(err) {
				t.Error(err)
			}
		}
		if failed := compiled.Failed(); len(failed) > 0 {
			t.Errorf("%s: kinds failed: %v", p.File, failed)
		}
	}
}

// compile compiles the built-in documents, the definitions and the catalogue.
func (p *project) compile(t *testing.T, definitions []definition) (*schema.Schema, []error) {
	t.Helper()
	parts := []compile.Documents{p.documents(t)}
	for _, d := range definitions {
		parts = append(parts, schematest.Decode(t, d.name, string(d.raw)))
	}
	compiled, _, errs := schemacheck.Compile(schematest.Documents(t).Append(parts...))
	return compiled, errs
}

// documents are the decoded objects of the catalogue.
func (p *project) documents(t *testing.T) compile.Documents {
	t.Helper()
	return schematest.Decode(t, p.File, string(p.read(t)))
}

// schemas are the objects of the catalogue.
func (p *project) schemas(t *testing.T) []compile.PermissionDocument {
	t.Helper()
	return p.documents(t).Permissions
}

// unmatched reports whether an error says no more than that a kind does not exist.
func unmatched(err error) bool {
	var fault *schema.Error
	return errors.As(err, &fault) && fault.Unmatched
}

// isByHand reports whether an error is about a kind whose definition is in no module.
func (p *project) isByHand(err error) bool { return len(p.ByHand) > 0 && unmatched(err) }

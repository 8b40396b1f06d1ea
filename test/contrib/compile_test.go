package contrib

import (
	"errors"
	"sync"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
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

// builtIn are the documents that fieldperm has without any file.
var builtIn = sync.OnceValues(func() (schema.Documents, error) {
	topology, err := load.BuiltIn()
	if err != nil {
		return schema.Documents{}, err
	}
	permissions, err := load.Catalogue(false)
	return schema.Documents{Topologies: []schema.Topology{topology}, Permissions: permissions}, err
})

// compile compiles the built-in documents, the definitions and the catalogue.
func (p *project) compile(t *testing.T, definitions []definition) (*schema.Schema, []error) {
	t.Helper()
	documents, err := builtIn()
	must(t, err)
	parts := []schema.Documents{p.documents(t)}
	for _, d := range definitions {
		more, errs := load.Decode(d.name, d.raw)
		must(t, errors.Join(errs...))
		parts = append(parts, more)
	}
	return schema.Compile(documents.Append(parts...))
}

// documents are the decoded objects of the catalogue.
func (p *project) documents(t *testing.T) schema.Documents {
	t.Helper()
	documents, errs := load.Decode(p.File, p.read(t))
	must(t, errors.Join(errs...))
	return documents
}

// schemas are the objects of the catalogue.
func (p *project) schemas(t *testing.T) []schema.PermissionDocument {
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

package generate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// sourceFiles are the files from which a permission schema is compiled.
type sourceFiles struct{ crds, schemas, openAPI []string }

func (f *sourceFiles) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.crds, "crd", nil, "`FILES` or directories with CustomResourceDefinitions")
	flags.StringSliceVar(&f.schemas, "permission-schemas", nil, "`FILES` or directories with PermissionSchemas, UncoveredPermissionSets and CustomResourceDefinitions")
	flags.StringSliceVar(&f.openAPI, "openapi", nil, "`FILES` with OpenAPI v3 documents of API servers, from kubectl get --raw /openapi/v3/apis/GROUP/VERSION")
}

// all returns the files whose documents have a kind.
func (f *sourceFiles) all() []string { return slices.Concat(f.crds, f.schemas) }

// compile returns the built-in kinds, the catalogue and the files, and what they compile to, with the sources of each verb. A document about a
// kind that is not known is only a warning: a catalogue may be about more kinds than the definitions that are given.
func (f *sourceFiles) compile(warnings io.Writer) (compile.Documents, *schema.Schema, error) {
	documents, errs := documents(f.all())
	for _, name := range f.openAPI {
		raw, err := os.ReadFile(name) //nolint:gosec // The user of the command chooses the path.
		if err != nil {
			errs = append(errs, fmt.Errorf("--openapi: cannot be read: %w: give a file", err))
			continue
		}
		topology, err := load.OpenAPIV3(name, raw)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(topology.Kinds) == 0 {
			errs = append(errs, fmt.Errorf("--openapi %q: describes no kind: give the JSON of /openapi/v3/apis/GROUP/VERSION", name))
		}
		documents.Topologies = append(documents.Topologies, topology)
	}
	if len(errs) > 0 {
		return compile.Documents{}, nil, errors.Join(errs...)
	}
	documents.Traced = true
	compiled, _, errs := schemacheck.Compile(documents)
	var faults []error
	for _, err := range errs {
		var fault *schema.Error
		if errors.As(err, &fault) && fault.Unmatched {
			say(warnings, "warning: %v", err)
			continue
		}
		faults = append(faults, err)
	}
	return documents, compiled, errors.Join(faults...)
}

// documents returns the built-in kinds, the catalogue and the files.
func documents(paths []string) (compile.Documents, []error) {
	builtIn, err := load.BuiltIn()
	if err != nil {
		return compile.Documents{}, []error{err}
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		return compile.Documents{}, []error{err}
	}
	files, errs := load.Files(paths)
	return compile.Documents{Topologies: []compile.Topology{builtIn}, Permissions: catalogue}.Append(files), errs
}

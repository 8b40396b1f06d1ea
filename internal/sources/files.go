package sources

import (
	"errors"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// Files decodes and compiles the sources that need no API server: the built-in kinds, the catalogue, and the administrator's files
// or directories. Any fault is an error that names file and position, so that a server never starts with less protection than its
// files require. Only faults about a kind that may be installed later are returned separately, as unmatched.
func Files(paths []string) (documents compile.Documents, compiled *schema.Schema, unmatched []error, err error) {
	return files(paths, false)
}

// TracedFiles does what Files does, in a traced compile.
func TracedFiles(paths []string) (documents compile.Documents, compiled *schema.Schema, unmatched []error, err error) {
	return files(paths, true)
}

func files(paths []string, traced bool) (documents compile.Documents, compiled *schema.Schema, unmatched []error, err error) {
	base, err := builtIn()
	if err != nil {
		return compile.Documents{}, nil, nil, err
	}
	more, errs := load.Files(paths)
	if len(errs) > 0 {
		return compile.Documents{}, nil, nil, utilerrors.NewAggregate(errs)
	}
	documents = base.Append(more)
	documents.Traced = traced
	compiled, _, errs = schemacheck.Compile(documents)
	var fatal []error
	for _, err := range errs {
		if isUnmatched(err) {
			unmatched = append(unmatched, err)
		} else {
			fatal = append(fatal, err)
		}
	}
	if len(fatal) > 0 {
		return compile.Documents{}, nil, nil, utilerrors.NewAggregate(fatal)
	}
	return documents, compiled, unmatched, nil
}

// builtIn returns the documents of the built-in kinds and of the catalogue.
func builtIn() (compile.Documents, error) {
	kinds, err := load.BuiltIn()
	if err != nil {
		return compile.Documents{}, err
	}
	catalogue, err := load.Catalogue(false)
	return compile.Documents{Topologies: []compile.Topology{kinds}, Permissions: catalogue}, err
}

func isUnmatched(err error) bool {
	var e *schema.Error
	return errors.As(err, &e) && e.Unmatched
}

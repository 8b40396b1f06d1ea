package load

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// Files decodes files. For a directory it decodes the files *.yaml, *.yml and *.json, sorted by name, without subdirectories. It returns
// everything that can be decoded, together with the errors.
func Files(paths []string) (compile.Documents, []error) {
	var parts []compile.Documents
	var errs []error
	for _, path := range paths {
		names, err := Paths(path)
		if err != nil {
			errs = append(errs, fault(path, "", "cannot be read: %v: give a file or a directory", err))
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				errs = append(errs, fault(name, "", "cannot be read: %v: give a file or a directory", err))
				continue
			}
			more, faults := Decode(name, raw)
			parts, errs = append(parts, more), append(errs, faults...)
		}
	}
	return compile.Documents{}.Append(parts...), errs
}

// Offline compiles the built-in kinds, the catalogue and files, without any server.
func Offline(paths []string) (*schema.Schema, []error) {
	docs, errs := builtInDocuments()
	if len(errs) > 0 {
		return &schema.Schema{}, errs
	}
	files, errs := Files(paths)
	compiled, _, faults := schemacheck.Compile(docs.Append(files))
	return compiled, append(errs, faults...)
}

func builtInDocuments() (compile.Documents, []error) {
	topology, err := BuiltIn()
	if err != nil {
		return compile.Documents{}, []error{err}
	}
	permissions, err := Catalogue(false)
	if err != nil {
		return compile.Documents{}, separate(err)
	}
	return compile.Documents{Topologies: []compile.Topology{topology}, Permissions: permissions}, nil
}

// Paths returns the path itself if it is a file. For a directory it returns the files *.yaml, *.yml and *.json, sorted by name, without
// subdirectories. The error is that of the file system.
func Paths(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			continue
		}
		// Files of mounted ConfigMaps are symbolic links, so the type of the directory entry is not enough.
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

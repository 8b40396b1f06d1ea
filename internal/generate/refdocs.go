package generate

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

func newRefdocs() *cobra.Command {
	var out, powers string
	var schemas []string
	command := &cobra.Command{
		Use:   "refdocs --out DIR [--permission-schemas FILES]",
		Short: "Write the reference of verbs and kinds as Markdown",
		Long: `refdocs writes into --out:

  verbs.md  every granular verb and the fields that it guards
  kinds.md  every kind and its permission tree

They describe the built-in catalogue and what --permission-schemas adds to it.`,
		Example: `  # The reference of a cluster with CRDs and permission schemas of its own.
  fieldperm-gen refdocs --out ./reference --permission-schemas ./crds,./permissions`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return errors.New("--out is missing: name the directory to write into")
			}
			documents, errs := documents(schemas)
			if len(errs) > 0 {
				return errors.Join(errs...)
			}
			compiled, errs := schema.Compile(documents)
			if len(errs) > 0 {
				return errors.Join(errs...)
			}
			if powers != "" {
				if err := writePowers(powers, compiled, documents); err != nil {
					return err
				}
			}
			return write(out, generators.Refdocs(compiled, documents))
		},
	}
	command.Flags().StringVar(&out, "out", "", "`DIR` to write into; made if it is missing")
	command.Flags().StringVar(&powers, "powers", "", "`FILE`, a page in which the table of powers is written anew")
	command.Flags().StringSliceVar(&schemas, "permission-schemas", nil, "`FILES` or directories with CustomResourceDefinitions and PermissionSchemas")
	return command
}

// writePowers writes the table of powers to a page, if the page has a marker for it.
func writePowers(file string, compiled *schema.Schema, documents schema.Documents) error {
	page, err := os.ReadFile(file) //nolint:gosec // The user of the command chooses the path.
	if err != nil {
		return err
	}
	if page, err = generators.Powers(page, compiled, documents); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, page, 0o644) //nolint:gosec // All users may read documentation.
}

// documents returns the built-in kinds, the catalogue and the files.
func documents(paths []string) (schema.Documents, []error) {
	builtIn, err := load.BuiltIn()
	if err != nil {
		return schema.Documents{}, []error{err}
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		return schema.Documents{}, []error{err}
	}
	files, errs := load.Files(paths)
	return schema.Documents{Topologies: []schema.Topology{builtIn}, Permissions: catalogue}.Append(files), errs
}

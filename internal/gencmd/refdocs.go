package gencmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

func newRefdocs() *cobra.Command {
	var out string
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
			return write(out, generators.Refdocs(compiled, documents))
		},
	}
	command.Flags().StringVar(&out, "out", "", "`DIR` to write into; made if it is missing")
	command.Flags().StringSliceVar(&schemas, "permission-schemas", nil, "`FILES` or directories with CustomResourceDefinitions and PermissionSchemas")
	return command
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

package generate

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators"
)

func newCRD() *cobra.Command {
	var in, out string
	command := &cobra.Command{
		Use:   "crd --in FILE [--out FILE]",
		Short: "Turn an annotated CustomResourceDefinition into one that an API server takes",
		Long: `crd reads a CustomResourceDefinition (YAML or JSON) whose schemas have x-kubernetes-permission-* keys,
compiles them, and writes it as YAML with the keys moved into the annotation
fieldperm.dev/permission-verbs, because an API server drops or refuses them in a schema. What the
annotation has already for other paths stays. Running it on its own output changes nothing.

A field must have the same verb in every served version that has it. If the annotation
fieldperm.dev/lossless-conversion declares that a conversion webhook keeps every field, a field that
has another name in another version must have the same verb there too. Versions whose verbs count
only beside granular:* are named in warnings on the standard error.`,
		Example: `  # Move the permission verbs of an author's CRD into its annotation, and install it.
  fieldperm-gen crd --in widgets.yaml | kubectl apply --server-side -f -

  # Do the same with the file that controller-gen has written, in place.
  fieldperm-gen crd --in config/crd/bases/example.com_widgets.yaml --out config/crd/bases/example.com_widgets.yaml`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if in == "" {
				return errors.New("--in is missing: name the file of the CustomResourceDefinition, or - for the standard input")
			}
			source, raw, err := read(command, in)
			if err != nil {
				return err
			}
			result, errs := generators.CRD(source, raw)
			if len(errs) > 0 {
				return errors.Join(errs...)
			}
			for _, warning := range generators.CRDWarnings(source, raw) {
				fmt.Fprintf(command.ErrOrStderr(), "warning: %v\n", warning)
			}
			if out == "" {
				_, err = command.OutOrStdout().Write(result)
				return err
			}
			if err := os.WriteFile(out, result, 0o644); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&in, "in", "", "`FILE` with the annotated CustomResourceDefinition, - for the standard input")
	command.Flags().StringVar(&out, "out", "", "`FILE` to write instead of the standard output, may be that of --in")
	return command
}

func read(command *cobra.Command, in string) (source string, raw []byte, err error) {
	if in == "-" {
		raw, err = io.ReadAll(command.InOrStdin())
		return "stdin", raw, err
	}
	if raw, err = os.ReadFile(in); err != nil {
		return in, nil, fmt.Errorf("--in: %w", err)
	}
	return in, raw, nil
}

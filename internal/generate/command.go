package generate

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/internal/printable"
)

// NewCommand returns fieldperm-gen. It uses the streams of the process unless the caller sets others.
func NewCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "fieldperm-gen",
		Short: "Generate what fieldperm's users install",
		Long: `fieldperm-gen generates what fieldperm's users install: CustomResourceDefinitions that carry
permission verbs and that an API server takes, the files that put fieldperm into a kube-apiserver, the
reference of verbs and kinds, and least roles.
It talks to no cluster.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noOtherCommand,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %q", err, command.CommandPath()+" --help")
	})
	root.AddCommand(
		newCRD(),
		newLint(),
		newManifests(),
		newOpenAPI(),
		newRefdocs(),
		newRoles(),
	)
	return root
}

// Run executes the command and returns the exit code: 0 on success, 1 on an error, or the code of the command's own. It writes every error to
// the error stream.
func Run(command *cobra.Command) int {
	err := command.Execute()
	if err == nil {
		return 0
	}
	code, errs := 1, flatten(err)
	var own *exit
	if errors.As(err, &own) {
		code, errs = own.code, own.errs
	}
	for _, err := range errs {
		say(command.ErrOrStderr(), "error: %v", err)
	}
	return code
}

// say writes one line. Names of files that others wrote may be in it: they cannot begin another line, or move the cursor of a terminal.
func say(to io.Writer, format string, args ...any) {
	fmt.Fprintln(to, printable.Text(fmt.Sprintf(format, args...)))
}

// flatten splits joined errors, so that each is on a line of its own.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, err := range joined.Unwrap() {
		out = append(out, flatten(err)...)
	}
	return out
}

func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("argument %q: %s takes flags only: see %q", args[0], command.CommandPath(), command.CommandPath()+" --help")
	}
	return nil
}

func noOtherCommand(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		var names []string
		for _, sub := range command.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				names = append(names, sub.Name())
			}
		}
		return fmt.Errorf("command %q: does not exist: use one of %s: see %q", args[0], strings.Join(names, ", "), command.CommandPath()+" --help")
	}
	return nil
}

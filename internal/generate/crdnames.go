package generate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/lint"
)

// checkNames applies the conventions about whose verb a name is. A reserved domain is an error; the others are warnings on the error stream,
// because a verb may be registered elsewhere.
func checkNames(command *cobra.Command, source string, raw []byte, registries []string) error {
	registry, errs := readRegistry(registries)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	problems, errs := lint.Names(lint.File{Name: source, Raw: raw}, registry)
	for _, f := range problems {
		text := fmt.Sprintf("%s:%d:%d: %s: %s [%s]", f.File, f.Line, f.Column, f.Message, f.Cure, f.Rule)
		if f.Level == finding.Error {
			errs = append(errs, errors.New(text))
			continue
		}
		say(command.ErrOrStderr(), "warning: %s", text)
	}
	return errors.Join(errs...)
}

package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Commands returns the commands of the plugin. They write to the streams; see the function of each.
func Commands(streams genericiooptions.IOStreams) []*cobra.Command {
	return []*cobra.Command{
		NewExplainCommand(streams),
		NewCanICommand(streams),
		NewWhoCanCommand(streams),
		NewDiffCommand(streams),
		NewReviewCommand(streams),
		NewConditionsCommand(streams),
		NewTightenCommand(streams),
		NewAuditCommand(streams),
		NewStatusCommand(streams),
		NewWhyCommand(streams),
		NewVersionCommand(streams),
	}
}

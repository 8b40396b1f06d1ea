package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/diagnosis"
)

// ErrNotProven means that the status was written, and that enforcement is not proven or that a document is not in force as it is written.
var ErrNotProven error = negative("enforcement is not proven everywhere")

// installPage is the page that says how to install fieldperm.
const installPage = "https://github.com/fieldperm/fieldperm/blob/main/docs/install/README.md"

// standing is one call of the status command.
type standing struct {
	options
}

// NewStatusCommand returns the status command. It writes the status to the streams' Out. The caller handles errors and the exit code; see
// ExitCode.
func NewStatusCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &standing{options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), instead: "see " + installPage}}
	o.cluster.Namespace = nil
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether enforcement is proven, where, and why not",
		Long: `Show whether every kube-apiserver is proven to enforce fieldperm, since when and for which resources; the documents
that are in force; the webhook configurations, the replicas and the versions. If enforcement is not proven, it shows
the most likely causes, each with a command to run.

Needs list on validatingwebhookconfigurations, customresourcedefinitions, permissionschemas,
uncoveredpermissionsets, conditionalpolicies, pods, roles, clusterroles and their bindings, and, in the namespace
default, events of events.k8s.io and endpointslices; get on pods/proxy; and create on subjectaccessreviews.

Ends with 0 if everything is proven and in force, 1 if something is not or fieldperm is not installed, 2 if that is
not known or something could not be read.`,
		Example: `  # Is enforcement proven, and if not, why?
  kubectl fieldperm status

  # Wait in a script until granular users are let in.
  until kubectl fieldperm status --context production >/dev/null; do sleep 5; done

  # Which documents are not in force as they are written?
  kubectl fieldperm status -o json | jq '.sources[] | select(.compiled == "False")'`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html")
	return cmd
}

func (o *standing) run(ctx context.Context) error {
	if err := o.outputIs(outputText, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	if err := reachable(ctx, config, o.withoutCluster()); err != nil {
		return err
	}
	reader, err := newStatusReader(config)
	if err != nil {
		return err
	}
	status := reader.read(ctx)
	if err := o.print(status); err != nil {
		return err
	}
	for _, m := range status.Missing {
		o.warn("the answer lacks %s: %s", m.What, m.Error)
	}
	for _, pod := range reader.strangers {
		o.warn("Pod %q has the label of fieldperm-webhook and is not in its namespace: it does not count as a replica: find out what runs there", pod)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("status: %w: the answer has what was read until then", err)
	}
	switch status.Outcome() {
	case diagnosis.Proven:
		return nil
	case diagnosis.NotProven, diagnosis.NotInstalled:
		return ErrNotProven
	case diagnosis.Unknown:
	}
	return ErrUnread
}

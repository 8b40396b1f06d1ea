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
		Long: `Show whether fieldperm has proven that every kube-apiserver enforces it, since when and for which
resources; the state of each PermissionSchema, UncoveredPermissionSet, ConditionalPolicy and annotated
CustomResourceDefinition; the webhook configurations; the replicas; and the versions. If enforcement is
not proven, the three most likely causes are shown, each with a command to run.

The proof is in the memory of fieldperm-webhook. The command asks for it in two ways: /readyz/interlock of
each replica through the Pod proxy of kube-apiserver, and SubjectAccessReviews in the name of users that hold
the marker by RBAC. fieldperm lets these through only with a proof, and one kube-apiserver answers them. Events
of the last hour say since when. They are never taken for a proof. If the two ways say nothing, the state is
"unknown".

It takes permission to list validatingwebhookconfigurations, customresourcedefinitions, permissionschemas,
uncoveredpermissionsets, conditionalpolicies, pods, events of events.k8s.io and endpointslices in the namespace
default, roles, clusterroles and their bindings; to get pods/proxy; and to create subjectaccessreviews. What
may not be read is named, and the rest is shown.

Ends with 0 if everything is proven and in force, 1 if enforcement is not proven somewhere, a document is not in
force or fieldperm is not installed, 2 if it is not known or if something could not be read.`,
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

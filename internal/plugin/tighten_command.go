package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

var (
	// ErrIncomplete means that the proposal was written and that the evidence for it has gaps.
	ErrIncomplete error = negative("the proposal is incomplete")
	// ErrRefusals means that a simulation was written and that it has refusals.
	ErrRefusals error = negative("writes of the log would be refused")
	// ErrBlocked means that update and patch were not taken away. The reasons have been written.
	ErrBlocked error = negative("update and patch are not taken away yet")
)

// NewTightenCommand returns the tighten command. It writes the proposal to the streams' Out, and progress and warnings to ErrOut. The
// caller handles errors and the exit code; see ExitCode.
func NewTightenCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &tightening{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}}
	// A subject has its rights in all namespaces.
	o.cluster.Namespace = nil
	cmd := &cobra.Command{
		Use:   "tighten SUBJECT [--audit-log FILE] [--apply | --undo]",
		Short: "Propose granular verbs in place of update and patch",
		Long: `Propose the Roles with granular verbs that a subject needs in place of update and patch, from what it was seen to
write. SUBJECT is the name of a user, system:serviceaccount:NAMESPACE:NAME, or group:NAME.

Evidence comes from PermissionObservations, and from audit logs with fieldperm's annotations. With --grants,
barriers come from --permissions and --crd only, and policies from --policies.

Nothing is changed without --apply. Its first call adds the Roles and a PermissionObservation. The next one takes
update and patch away, if the observation has seen writes and none that needs them. --undo restores what was there,
by the record in a Secret of the namespace kube-system: keep it.

Ends with 0 if the proposal is complete or a step was made, 1 if the evidence has gaps, there is new access or a
loss, the simulation refuses a write or cannot judge, or the second step is refused, 2 for an error.`,
		Example: `  # What does the operator need, by the observations of the cluster?
  kubectl fieldperm tighten system:serviceaccount:ops:operator

  # By audit logs as well, with one verb for the images of all containers.
  kubectl fieldperm tighten system:serviceaccount:ops:operator --audit-log audit.log --audit-log audit-1.log.gz --generalize image

  # Would any write of last week have been refused?
  kubectl fieldperm tighten system:serviceaccount:ops:operator --simulate last-week.log

  # Add the Roles and observe; later, the same command takes update and patch away.
  kubectl fieldperm tighten system:serviceaccount:ops:operator --apply

  # Give update and patch back.
  kubectl fieldperm tighten system:serviceaccount:ops:operator --undo`,
		Args:          cobra.ExactArgs(1),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.auditLogs, "audit-log", nil, "`FILE` with audit events, \"-\" for standard input; repeatable")
	flags.StringArrayVar(&o.managers, "managed-fields", nil, "`MANAGER` whose fields in metadata.managedFields are a hint; repeatable")
	flags.BoolVar(&o.includeHints, "include-hints", false, `let the hints of --managed-fields count as evidence`)
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, in place of a cluster`)
	flags.StringArrayVar(&o.groups, "group", nil, `group of the user, besides those in the evidence; repeatable`)
	flags.StringSliceVar(&o.generalize, "generalize", nil, `verbs to grant without their parameter, such as image or deployments.apps=image`)
	flags.StringArrayVar(&o.also, "also", nil, "`RESOURCE=VERB` to grant without evidence, such as deployments/status.apps=granular:condition(Progressing); repeatable")
	flags.StringSliceVar(&o.keepUpdate, "keep-update", nil, `resources on which the subject keeps update and patch, such as leases.coordination.k8s.io`)
	flags.StringVar(&o.resources, "resources", string(tighten.Seen), `grant on the resources of the evidence (seen), or also on "*" where update is held on "*" (held)`)
	flags.StringVar(&o.namespaces, "namespaces", string(tighten.HeldReach), `grant in the namespaces where update is held (held), or of the evidence (seen)`)
	flags.StringVar(&o.names, "names", string(tighten.HeldReach), `grant on the objects where update is held (held), or of the evidence (seen)`)
	flags.BoolVar(&o.allowNew, "allow-new", false, `also grant what was seen and what update and patch do not cover`)
	flags.BoolVar(&o.allowRead, "allow-read", false, `accept that the subject may read more objects, because the marker needs get`)
	flags.BoolVar(&o.allowLoss, "allow-loss", false, `accept that the subject loses the listed rights besides update and patch`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets, for their barriers`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions, for their barriers`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies, which also decide`)
	flags.StringArrayVar(&o.simulate, "simulate", nil, "replay `FILE` with audit events against the proposal; repeatable")
	flags.BoolVar(&o.apply, "apply", false, `make the next step: add Roles and observe, or take update and patch away`)
	flags.BoolVar(&o.undo, "undo", false, `restore what was there before --apply`)
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, `none; client prints the steps of --apply and --undo; server sends them as dry runs`)
	flags.BoolVar(&o.forceUnproven, "force-unproven", false, `let --apply take update and patch away despite gaps of the observation or the evidence`)
	flags.BoolVar(&o.forceOverwrite, "force-overwrite", false, `let --undo restore although others have changed roles or bindings, or revoked rights`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, html, or the objects to add and to change as json or yaml`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html")
	return cmd
}

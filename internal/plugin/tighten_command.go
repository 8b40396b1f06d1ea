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
)

// NewTightenCommand returns the tighten command. It writes the proposal to the streams' Out, and progress and warnings to ErrOut. The
// caller handles errors and the exit code; see ExitCode.
func NewTightenCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &tightening{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}}
	// A subject has its rights in all namespaces.
	o.cluster.Namespace = nil
	cmd := &cobra.Command{
		Use:   "tighten SUBJECT [--audit-log FILE] [--out DIR]",
		Short: "Propose granular verbs in place of update and patch",
		Long: `Propose the Roles with granular verbs that a subject needs in place of update and patch, from what it was seen to
write. SUBJECT is the name of a user, system:serviceaccount:NAMESPACE:NAME, or group:NAME.

Evidence comes from PermissionObservations, and from audit logs with fieldperm's annotations. With --grants,
barriers come from --permissions and --crd only, and policies from --policies.

The command changes nothing. --out writes files for kubectl: 1-add.yaml adds the granular verbs, 2-remove.yaml takes
update and patch away, undo.yaml restores what was there. The output and the head of each file have the commands.

Ends with 0 if the proposal is complete, 1 if the evidence has gaps, there is new access or a loss, or the simulation
refuses a write or cannot judge, 2 for an error.`,
		Example: `  # What does the operator need, by the observations of the cluster?
  kubectl fieldperm tighten system:serviceaccount:ops:operator

  # By audit logs as well, with one verb for the images of all containers.
  kubectl fieldperm tighten system:serviceaccount:ops:operator --audit-log audit.log --audit-log audit-1.log.gz --generalize image

  # Would any write of last week have been refused?
  kubectl fieldperm tighten system:serviceaccount:ops:operator --simulate last-week.log

  # Write the files for both steps and the way back.
  kubectl fieldperm tighten system:serviceaccount:ops:operator --out operator`,
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
	flags.StringVar(&o.out, "out", "", "write 1-add.yaml, 2-remove.yaml and undo.yaml to the directory `DIR`, which is new, empty or has only these files")
	flags.StringVarP(&o.output, "output", "o", outputText, `text or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text html")
	return cmd
}

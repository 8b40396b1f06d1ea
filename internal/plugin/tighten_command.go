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
		Long: `Propose the Roles with granular verbs that a user, a group or a ServiceAccount needs in place
of update and patch, from what it was seen to write, and the changes of its present Roles that
take update and patch away. Nothing is changed without --apply.

SUBJECT is the name of a user, system:serviceaccount:NAMESPACE:NAME, or group:NAME.

Evidence comes from the PermissionObservations of the cluster that observe the subject, and from
audit logs (audit.k8s.io/v1, JSON lines or EventLists, also compressed by gzip). An event counts
if fieldperm has annotated it with the verbs of the changed fields. Sources may have seen the same
writes, so the count of a verb is the largest of the sources and not the sum.

A granular verb is granted where the subject holds update or patch, on the same resources and names,
in the same namespaces, if the verb passes no barrier. What was seen and is not covered by that is
listed as new access, and is part of the proposal only with --allow-new. Granular users may also
patch objects, which answers with the object: where the subject holds neither patch nor get, this is
listed as new access, and is accepted with --allow-read. With --grants the barriers come from --permissions and --crd, and from nowhere
else. Rules with create and delete are left as they are. A Role that others share is left as it is,
too: the subject gets a copy without update and patch.

A right besides update and patch may be lost too: verbs of other programs that were a part of "*", or
the right to write Roles and bindings that grant update and patch. It is listed, and is accepted
with --allow-loss.

A ConditionalPolicy about the subject, where update and patch would be taken away, also decides, and is left
as it is: it is listed. A Deny of a granular verb of the proposal is a loss. With --grants the policies come
from --policies. Webhooks of fieldperm-webhook that return conditions are not asked.

--simulate replays a log against the proposal and lists the writes that would be refused.

--apply makes one step. The first adds the Roles, and a PermissionObservation with warnings. The
second, when the command is called again, takes update and patch away, if the observation has seen
writes, and none that needs more than the granular verbs. --undo restores what was there, by the record
in a Secret of the namespace kube-system: keep it.

Ends with 0 if the proposal is complete or a step was made, with 1 if the evidence has gaps, if there
is new access or a loss, if a write of the simulation would be refused or cannot be judged, if a
simulation has no write, or if the second step is refused, and with 2 for an error.`,
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
	flags.StringArrayVar(&o.auditLogs, "audit-log", nil, "`FILE` with audit events; \"-\" reads standard input. May be given several times")
	flags.StringArrayVar(&o.managers, "managed-fields", nil, "`MANAGER` whose fields in metadata.managedFields of live objects are a hint. May be given several times")
	flags.BoolVar(&o.includeHints, "include-hints", false, `let the hints of --managed-fields count as evidence`)
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, in place of a cluster`)
	flags.StringArrayVar(&o.groups, "group", nil, `group of the user, besides those in the evidence. May be given several times`)
	flags.StringSliceVar(&o.generalize, "generalize", nil, `names of verbs to grant without their parameter: image makes granular:image of granular:image(web), and deployments.apps=image does so on this resource only`)
	flags.StringArrayVar(&o.also, "also", nil, "`RESOURCE=VERB` to grant although no write with it was seen: deployments/status.apps=granular:condition(Progressing). May be given several times")
	flags.StringSliceVar(&o.keepUpdate, "keep-update", nil, `resources on which the subject keeps update and patch: leases.coordination.k8s.io`)
	flags.StringVar(&o.resources, "resources", string(tighten.Seen), `grant on the resources of the evidence (seen), or on "*" as well where the subject holds update on "*" (held)`)
	flags.StringVar(&o.namespaces, "namespaces", string(tighten.HeldReach), `grant in the namespaces that the subject holds update in (held), or in those of the evidence (seen)`)
	flags.StringVar(&o.names, "names", string(tighten.HeldReach), `grant on the objects that the subject holds update on (held), or on those of the evidence (seen)`)
	flags.BoolVar(&o.allowNew, "allow-new", false, `also grant what was seen and what update and patch of the subject do not cover`)
	flags.BoolVar(&o.allowRead, "allow-read", false, `accept that the subject may read objects, because the marker needs get, where it holds neither patch nor get`)
	flags.BoolVar(&o.allowLoss, "allow-loss", false, `accept that the subject loses rights besides update and patch, which are listed`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets, for their barriers`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions, for their barriers`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies, which also decide`)
	flags.StringArrayVar(&o.simulate, "simulate", nil, "replay `FILE` with audit events against the proposal. May be given several times")
	flags.BoolVar(&o.apply, "apply", false, `make the next step: add Roles and observe, then take update and patch away`)
	flags.BoolVar(&o.undo, "undo", false, `restore what was there before --apply`)
	flags.StringVar(&o.dryRun, "dry-run", dryRunNone, `none; client prints the steps of --apply and --undo; server sends them as dry runs`)
	flags.BoolVar(&o.forceUnproven, "force-unproven", false, `let --apply take update and patch away although the observation or the evidence has gaps`)
	flags.BoolVar(&o.forceOverwrite, "force-overwrite", false, `let --undo restore although others have changed roles or bindings since, or have revoked rights`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json or yaml: the objects to add and to change; or html: a page of the proposal`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html")
	return cmd
}

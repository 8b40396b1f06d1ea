package plugin

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/finding"
)

// ErrFindings means that an audit was written and that it has findings at the level of --fail-on.
var ErrFindings error = negative("the audit has findings")

// NewAuditCommand returns the audit command. It writes the findings to the streams' Out, and progress and warnings to ErrOut. The caller
// handles errors and the exit code; see ExitCode.
func NewAuditCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &auditing{inquirer: inquirer{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), instead: "audit files with --grants"}}}
	// The audit is about all users. The requests to the cluster are sent as the user of the kubeconfig.
	o.cluster.Impersonate, o.cluster.ImpersonateGroup, o.cluster.ImpersonateUID, o.cluster.ImpersonateUserExtra = nil, nil, nil, nil
	cmd := &cobra.Command{
		Use:   "audit [-n NAMESPACE] [--grants FILE] [--fail-on LEVEL]",
		Short: "Find faults in Roles and bindings with granular verbs",
		Long: `Find faults in the Roles, ClusterRoles and bindings of a cluster, or of files: verbs that no field has,
verbs without the marker and the marker without verbs, parameters that never match, wildcards that pass
barriers, grants of update that make granular verbs idle, powers in the hands of many, barriers that no
subject or every user can pass, and barriers and markers that are not enforced. docs/reference/audit.md
has all rules, each with its cure.

The rights of a subject are those of all its bindings, and of the groups to which it always belongs. RBAC
does not say which other groups a user belongs to: where that counts, the finding says so, and has a lower
level. ConditionalPolicies, and authorizers other than RBAC, are not read as grants.

With --grants files are audited and no cluster is asked, such as those of a GitOps repository. Verbs are
then those of Kubernetes 1.37, of --crd and of --permissions. A finding names the file and the line.

-n limits the findings to the Roles and RoleBindings of one namespace and to the ClusterRoles that these
bind. ClusterRoles of Kubernetes itself with the verb "*" are counted in one note. --all lists them.

The command takes permission to list roles, clusterroles, rolebindings and clusterrolebindings, and the
sources of verbs: customresourcedefinitions, apiservices, permissionschemas, uncoveredpermissionsets and
conditionalpolicies. To find out whether enforcement is proven it takes permission to create
subjectaccessreviews. Findings that take what may not be read are left out, and a warning names them.

Ends with 0 if there is no finding at the level of --fail-on or above, with 1 if there is one, and with 2
for an error, for an answer that lacks something, and after an interrupt, which leaves what was found.`,
		Example: `  # Which grants of the cluster do not do what they say?
  kubectl fieldperm audit

  # In the CI of a GitOps repository: the files alone, as SARIF for code scanning.
  kubectl fieldperm audit --grants rbac/ --crd crds/ --permissions permissions/ -o sarif >audit.sarif

  # Fail for warnings too, in one namespace.
  kubectl fieldperm audit -n shop --fail-on warning`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	var levels []string
	for _, l := range finding.Levels() {
		levels = append(levels, string(l))
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, to audit in place of a cluster`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets, with --grants`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions, with --grants`)
	flags.StringVar(&o.failOn, "fail-on", string(audit.Error), "`LEVEL` from which on a finding makes the exit code 1: "+strings.Join(levels, ", "))
	flags.IntVar(&o.many, "many", audit.DefaultMany, `how many subjects may hold a verb that has effects beyond its field`)
	flags.BoolVar(&o.all, "all", false, `list the ClusterRoles of Kubernetes itself one by one`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml, sarif or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml sarif html")
	if f := flags.Lookup("namespace"); f != nil {
		f.Usage = "namespace to which the findings are limited"
	}
	return cmd
}

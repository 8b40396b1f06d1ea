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
		Long: `Find faults in Roles, ClusterRoles and bindings, such as verbs that no field has, verbs without the marker,
wildcards that pass barriers, and barriers that no subject can pass. docs/reference/audit.md has all rules.
ConditionalPolicies, and authorizers other than RBAC, are not read as grants.

With --grants no cluster is asked: verbs are those of Kubernetes 1.37, --crd and --permissions.

Needs list on roles, clusterroles, rolebindings, clusterrolebindings, customresourcedefinitions, apiservices,
permissionschemas, uncoveredpermissionsets and conditionalpolicies, and create on subjectaccessreviews.

Ends with 0 if there is no finding at the level of --fail-on or above, 1 if there is one, 2 for an error or an
answer that lacks something.`,
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
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, in place of a cluster`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets, with --grants`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions, with --grants`)
	flags.StringVar(&o.failOn, "fail-on", string(audit.Error), "`LEVEL` from which a finding makes the exit code 1: "+strings.Join(levels, ", "))
	flags.IntVar(&o.many, "many", audit.DefaultMany, `how many subjects may hold a verb with a power`)
	flags.BoolVar(&o.all, "all", false, `list the ClusterRoles of Kubernetes one by one`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml, sarif or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml sarif html")
	if f := flags.Lookup("namespace"); f != nil {
		f.Usage = "namespace to which the findings are limited"
	}
	return cmd
}

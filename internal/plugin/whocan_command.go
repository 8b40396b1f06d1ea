package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewWhoCanCommand returns the who-can command. It writes the answer to the streams' Out, and progress and warnings to ErrOut. The caller handles
// errors and the exit code; see ExitCode.
func NewWhoCanCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &whoCan{inquirer: inquirer{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}}}
	cmd := &cobra.Command{
		Use:   "who-can VERB (KIND [NAME] | KIND/NAME) [--field PATH] [-n NAMESPACE | -A]",
		Short: "List the subjects that may change a field",
		Long: `List the users, groups and ServiceAccounts that may change a field, by which verbs and which bindings.

VERB is create, update or patch. KIND is as in kubectl. PATH is as for explain. Without NAME the answer is about
all objects of the namespace.

HOW is one of:
  generic      the verb of the request, at a barrier together with the verb of the barrier
  granular     the marker with a verb of the field
  wildcard     a rule with the verb "*", which passes every barrier
  conditional  one of these, under the condition of the last column

A row is about a user who is only this subject. Other authorizers of kube-apiserver are not read.

Needs list on clusterroles, clusterrolebindings, roles, rolebindings, customresourcedefinitions, apiservices,
permissionschemas, uncoveredpermissionsets and conditionalpolicies. With --grants no cluster is asked.

Ends with 0 if the answer is complete, also if no subject may, 2 if it lacks something.`,
		Example: `  # Which subjects may change the image of the containers of this Deployment?
  kubectl fieldperm who-can update deployments/web --field spec.template.spec.containers.image -n shop

  # Which may change the replicas of any Deployment, through the scale?
  kubectl fieldperm who-can patch deployments --field spec.replicas --subresource scale -A

  # Which fields of a ConfigMap may each subject change? A page.
  kubectl fieldperm who-can update configmaps/settings -n shop -o html >settings.html`,
		Args:          cobra.RangeArgs(2, 3),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          onObject(func(cmd *cobra.Command, verb, object string) error { return o.run(cmd.Context(), verb, object) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.field, "field", "", `path of the field; all fields if not given`)
	flags.StringVar(&o.subresource, "subresource", "", `subresource that is written, such as scale or status`)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, `about the objects of all namespaces`)
	flags.StringVar(&o.apiVersion, "api-version", "", `group and version of the kind, such as apps/v1`)
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, in place of a cluster`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets, with --grants`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions, with --grants`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies, in place of those of the same name`)
	flags.StringVarP(&o.output, "output", "o", outputTable, `table, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "table json yaml html", oneOf("create", "update", "patch"), kinds)
	return cmd
}

package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// NewCanICommand returns the can-i command. It writes the answer to the streams' Out, and warnings to ErrOut. The caller handles errors and the
// exit code; see ExitCode.
func NewCanICommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &permission{inquirer: inquirer{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}}}
	// --as is the user that the answer is about. The requests to the cluster are sent as the user of the command.
	o.cluster.Impersonate, o.cluster.ImpersonateGroup, o.cluster.ImpersonateUID, o.cluster.ImpersonateUserExtra = nil, nil, nil, nil
	cmd := &cobra.Command{
		Use:   "can-i (update | patch) (KIND NAME | KIND/NAME) (--field PATH... | --list)",
		Short: "Ask whether a user may change fields of an object",
		Long: `Ask whether a user may change fields of one object. The answer is yes if no value is refused, no if every other
value is, or depends, with the conditions. It is not yes if barriers or conditions cannot be read.

update is for kubectl replace, patch for kubectl apply, edit, scale and patch. PATH is as for explain, or has an item
by its key (.spec.template.spec.containers[name="web"].image) or index.

Needs get on the object, and with --as create on subjectaccessreviews. With --grants and -f no cluster is asked.

Ends with 0 if every answer is yes, 1 if one is no or depends, 2 if the answer lacks something.`,
		Example: `  # May I scale this Deployment?
  kubectl fieldperm can-i patch deployments/web --field spec.replicas -n shop

  # May the deployer set this image?
  kubectl fieldperm can-i patch deploy/web --field '.spec.template.spec.containers[name="web"].image' \
    --value '"nginx:1.29"' --as system:serviceaccount:ci:deployer

  # Which fields may alice change?
  kubectl fieldperm can-i patch deployments/web --list --as alice

  # Decided from files alone.
  kubectl fieldperm can-i update deployments/web --field spec.replicas -f deployment.yaml --as alice --grants rbac.yaml`,
		Args:          cobra.RangeArgs(2, 3),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          onObject(func(cmd *cobra.Command, verb, object string) error { return o.run(cmd.Context(), verb, object) }),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.fields, "field", nil, `field that is changed; repeatable`)
	flags.StringVar(&o.value, "value", "", `new value of the fields, as JSON; null removes them`)
	flags.BoolVar(&o.list, "list", false, `list the fields that the user may change`)
	flags.StringVarP(&o.file, "filename", "f", "", `object in place of that of the cluster; "-" is standard input`)
	flags.StringVar(&o.as, "as", "", `user to answer about, such as system:serviceaccount:NAMESPACE:NAME`)
	flags.StringArrayVar(&o.asGroups, "as-group", nil, `group of the user, besides system:authenticated; repeatable`)
	flags.StringVar(&o.subresource, "subresource", "", `subresource of the request, such as status or scale`)
	flags.StringVar(&o.apiVersion, "api-version", "", `group and version of the kind, such as apps/v1`)
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, in place of a cluster`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets, with --grants`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions, with --grants`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies`)
	flags.IntVar(&o.maxChecks, "max-checks", fieldperm.DefaultMaxChecks, `how many permission checks a change to --value may cost`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html", oneOf("update", "patch"), kinds)
	o.changed = func(name string) bool { return flags.Changed(name) }
	return cmd
}

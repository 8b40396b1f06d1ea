package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewExplainCommand returns the explain command. It writes the tree to the streams' Out, and warnings to ErrOut. The caller handles errors
// and the exit code; see ExitCode.
func NewExplainCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &explanation{inquirer: inquirer{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), instead: "give --offline"}}}
	// A kind has the same fields in all namespaces.
	o.cluster.Namespace = nil
	cmd := &cobra.Command{
		Use:   "explain (KIND[/SUBRESOURCE][.PATH] | --all)",
		Short: "Show the verbs of a kind and of its fields",
		Long: `Show which verbs cover a field: the chain from general to specific, what each verb covers and its source, the
barriers and the powers. Then come the fields below it.

KIND is as in kubectl: deployments, deploy, deployment.v1.apps, deployments/scale. PATH is as in kubectl explain
(spec.containers.image), in a PermissionSchema (.metadata.labels["example.com/x"]) or in a denial
(.spec.containers[name="web"].image).

Needs list on customresourcedefinitions, apiservices, permissionschemas and uncoveredpermissionsets. With
--offline, --crd or --permissions no cluster is asked: the kinds are those of Kubernetes 1.37 and of the files.

Ends with 0 if the answer is complete, 2 if it lacks something.`,
		Example: `  # Which verbs cover the image of a container?
  kubectl fieldperm explain deployments.spec.template.spec.containers.image

  # The whole tree of a custom resource, from files alone.
  kubectl fieldperm explain widgets --recursive --crd widgets-crd.yaml --permissions permissions/

  # A page of every kind of this cluster.
  kubectl fieldperm explain --all -o html >verbs.html`,
		Args:          cobra.MaximumNArgs(1),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.apiVersion, "api-version", "", `group and version of the kind, such as apps/v1`)
	flags.BoolVar(&o.recursive, "recursive", false, `show the fields of all levels`)
	flags.BoolVar(&o.all, "all", false, `every known kind, only with -o html`)
	flags.BoolVar(&o.fromFiles, "offline", false, `ask no cluster, use built-in kinds`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html", kindsAndPaths)
	return cmd
}

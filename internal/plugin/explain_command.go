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
		Long: `Show which verbs cover a field: the chain from general to specific with what each verb covers, the
barriers and the powers, and which source says so. Then come the fields below it, with their types
and verbs: one level, or all with --recursive.

KIND is what kubectl takes: deployments, deploy, deployment.v1.apps. A subresource stands behind a
slash: deployments/scale. PATH may be as in kubectl explain (spec.containers.image), as in a
PermissionSchema (.spec.containers[*].image, .metadata.labels["example.com/x"]), or as in the message
of a denial (.spec.containers[name="web"].image).

The cluster of the kubeconfig is read as the webhook reads it, which takes permission to list
customresourcedefinitions, apiservices, permissionschemas and uncoveredpermissionsets. What may not be
read is named, and the rest is shown. With --offline, --crd or --permissions no cluster is asked: the
kinds are those of Kubernetes 1.37 and of the files.

-o html writes one page that can be opened without a network and passed on: of KIND, or with --all of
every kind that is known.

Ends with 0 if the answer is complete, 2 if it lacks what could not be read or if nothing can be said.`,
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
	flags.StringVar(&o.apiVersion, "api-version", "", `group and version of the kind, such as apps/v1; the preferred one if not given`)
	flags.BoolVar(&o.recursive, "recursive", false, `show the fields of all levels`)
	flags.BoolVar(&o.all, "all", false, `every kind that is known, in a page: only with -o html`)
	flags.BoolVar(&o.fromFiles, "offline", false, `ask no cluster: only built-in kinds, and those of --crd and --permissions`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets; no cluster is asked`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions; no cluster is asked`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml html", kindsAndPaths)
	return cmd
}

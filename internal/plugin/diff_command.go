package plugin

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// NewDiffCommand returns the diff command. It writes the answer to the streams' Out. The caller handles errors and the exit code; see ExitCode.
func NewDiffCommand(streams genericiooptions.IOStreams) *cobra.Command {
	filenames, kustomize, recursive := []string{}, "", false
	o := &difference{
		inquirer:  inquirer{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), instead: "name another cluster"}},
		manifests: genericclioptions.FileNameFlags{Usage: "the manifests to apply", Filenames: &filenames, Kustomize: &kustomize, Recursive: &recursive},
	}
	// --as is the user that the answer is about. The requests to the cluster are sent as the user of the command.
	o.cluster.Impersonate, o.cluster.ImpersonateGroup, o.cluster.ImpersonateUID, o.cluster.ImpersonateUserExtra = nil, nil, nil, nil
	cmd := &cobra.Command{
		Use:   "diff (-f FILE | -k DIRECTORY) [--server-side] [--as USER]",
		Short: "Show which verbs an apply needs, and which the user holds",
		Long: `Show what kubectl apply would change, which verbs each change needs, whether the user holds them, and the role to
ask an administrator for. -o role writes the role and its binding alone.

The changes are those of dry runs in your name. If one is refused, they are computed without defaults and mutating
webhooks.

Needs get on the objects, and with --as create on subjectaccessreviews.

Ends with 0 if an apply changes nothing, 1 if it changes objects, 2 if the answer lacks something or an object
cannot be compared. With --check: 0 if the user holds all verbs, 1 if not.`,
		Example: `  # May I apply this? Which verbs are missing?
  kubectl fieldperm diff -f deployment.yaml

  # Ask the administrator for the role of a directory of manifests, applied by server-side apply.
  kubectl fieldperm diff -k overlays/production --server-side -o role

  # An administrator grants a pipeline what it needs for this change.
  kubectl fieldperm diff -f deployment.yaml --as system:serviceaccount:ci:deployer -o role | kubectl apply -f -

  # In a pipeline: stop before the apply if it would be refused.
  kubectl fieldperm diff -f manifests/ --check && kubectl apply -f manifests/`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	o.manifests.AddFlags(flags)
	flags.StringVarP(&o.selector, "selector", "l", "", `labels of the objects to compare`)
	flags.BoolVar(&o.serverSide, "server-side", false, `compare with kubectl apply --server-side`)
	flags.StringVar(&o.manager, "field-manager", "", `field manager of the apply; kubectl's own if not given`)
	flags.BoolVar(&o.forceConflicts, "force-conflicts", false, `take fields over from other field managers, with --server-side`)
	flags.StringVar(&o.as, "as", "", `user to answer about, such as system:serviceaccount:NAMESPACE:NAME`)
	flags.StringArrayVar(&o.asGroups, "as-group", nil, `group of the user, besides system:authenticated; repeatable`)
	flags.BoolVar(&o.check, "check", false, `end with 1 only if the user lacks a verb`)
	flags.StringVar(&o.authorizationConfig, "authorization-config", "", "`FILE` with the AuthorizationConfiguration of fieldperm-webhook, whose authorizers decide")
	flags.IntVar(&o.maxChecks, "max-checks", fieldperm.DefaultMaxChecks, `how many permission checks fieldperm-webhook makes for one request`)
	flags.StringVarP(&o.output, "output", "o", outputTable, `table, json, yaml, html or role`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "table json yaml html role")
	return cmd
}

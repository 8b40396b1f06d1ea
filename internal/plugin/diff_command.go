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
		Short: "Show which verbs an apply of manifests needs, and which the user holds",
		Long: `Show what kubectl apply would change, which verbs each change needs, whether the user
holds them, and the whole role to ask an administrator for, so that one round is enough.

The objects that would be stored are the results of dry runs, which are sent as the user of the kubeconfig
and change nothing. If the API server refuses a dry run, the result is computed without it: defaults and
mutating webhooks of the API server are then not in it. Changes that fieldperm-webhook names in its refusal
are added, with "by API server" as their change.

The annotation of client-side apply is a change, because kubectl apply writes it. Each object has rows for
the request as well: the API server lets a request in by the marker granular or by a generic verb.

The role has the most specific verbs that are enough, on the objects of the manifests only. For an object
that does not exist yet, the marker is on all names, because a request to create has none. -o role writes the
role and its binding alone, for kubectl apply -f - of the administrator.

Without --as the answer is about the user of the kubeconfig, and takes only its own permissions. It takes
permission to get the objects. With --as it takes permission to create subjectaccessreviews as well. If
permission schemas, policies or objects cannot be read, the command warns of what the answer lacks.

Ends with 0 if an apply changes nothing, 1 if it changes objects, whether the user holds the verbs or not,
2 if the answer lacks something or an object cannot be compared. With --check it ends with 0 if the
user holds all verbs, and with 1 if not.`,
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
	flags.StringVarP(&o.selector, "selector", "l", "", `labels of the objects to compare, as in kubectl`)
	flags.BoolVar(&o.serverSide, "server-side", false, `compare with kubectl apply --server-side`)
	flags.StringVar(&o.manager, "field-manager", "", `field manager of the apply; kubectl's own if not given`)
	flags.BoolVar(&o.forceConflicts, "force-conflicts", false, `with --server-side: take fields over from other field managers`)
	flags.StringVar(&o.as, "as", "", `user that the answer is about: a name, or system:serviceaccount:NAMESPACE:NAME`)
	flags.StringArrayVar(&o.asGroups, "as-group", nil, `group of that user; may be given several times. system:authenticated is added`)
	flags.BoolVar(&o.check, "check", false, `end with 1 only if the user lacks a verb`)
	flags.StringVar(&o.authorizationConfig, "authorization-config", "", "`FILE` with the AuthorizationConfiguration of fieldperm-webhook, whose authorizers decide")
	flags.IntVar(&o.maxChecks, "max-checks", fieldperm.DefaultMaxChecks, `how many permission checks fieldperm-webhook makes for one request`)
	flags.StringVarP(&o.output, "output", "o", outputTable, `table, json, yaml, html or role`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "table json yaml html role")
	return cmd
}

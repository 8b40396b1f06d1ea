package plugin

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// ErrDenied means that the request was decided and denied; the report has been written in this case. Every other error means that
// nothing was decided.
var ErrDenied = errors.New("the request is denied")

// ExitCode returns the exit code of the process: 0 allowed or complete, 1 denied, incomplete, refused or different, 2 nothing decided, or an answer
// that lacks what could not be read (ErrUnread). The output has been written for 0, 1 and ErrUnread.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrDenied), errors.Is(err, ErrIncomplete), errors.Is(err, ErrRefusals), errors.Is(err, ErrBlocked), errors.Is(err, ErrDifferences):
		return 1
	}
	return 2
}

// NewReviewCommand returns the review command. It writes the report to the streams' Out and warnings to ErrOut. The caller handles errors
// and the exit code; see ExitCode.
func NewReviewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}
	// --as is the user that the review is about. The requests to the cluster are sent as the user of the command.
	o.cluster.Impersonate, o.cluster.ImpersonateGroup, o.cluster.ImpersonateUID, o.cluster.ImpersonateUserExtra = nil, nil, nil, nil
	cmd := &cobra.Command{
		Use:   "review (-f REVIEW | --old FILE --new FILE --as USER) [--grants FILE]",
		Short: "Decide on one write request, field by field",
		Long: `Decide on one write request as fieldperm's webhook would: which fields change, which
permission verbs cover each change, and whether the user holds them.

The request is an AdmissionReview (-f), or two states of an object: --old alone is a DELETE,
--new alone a CREATE, both are an UPDATE by the user --as.

With --grants the Roles, ClusterRoles and bindings of these files decide, as RBAC does, and no
cluster is needed. Without, the cluster of the kubeconfig is asked by SubjectAccessReviews, which
takes permission to create these, and its permission schema is read as the webhook reads it, which
takes permission to list customresourcedefinitions, apiservices, permissionschemas,
uncoveredpermissionsets and conditionalpolicies. Documents of --crd, --permissions and --policies stand in
for those of the same name.

With --authorization-config the authorizers of this file decide, as in fieldperm-webhook, which reads the
same file. Webhooks that return conditions are asked about the request and evaluate their conditions on the
objects. Run the command where the files are that it names. An authorizer of type RBAC takes permission to
list roles, clusterroles, rolebindings and clusterrolebindings. Without the flag kube-apiserver decides, and
the command does not know whether fieldperm-webhook has such a file.

With --grants, ConditionalPolicies come from --policies only. Their conditions are compiled and evaluated,
but not checked against the types of objects: a policy that fieldperm-webhook refuses because a field is
misspelt decides here.

kubectl get and kubectl apply leave metadata.managedFields out unless --show-managed-fields is given.
Without them a change of field owners is not judged, and the report says so.

Ends with 0 if the request is allowed, 1 if it is denied, 2 if nothing could be decided.`,
		Example: `  # May alice make this change? Decided from files alone.
  kubectl get deployment web -o yaml --show-managed-fields >deployment.yaml
  kubectl fieldperm review --old deployment.yaml --new scaled.yaml --as alice --grants rbac.yaml

  # Which verbs would an operator need for this change of a custom resource?
  kubectl fieldperm review --old widget.yaml --new changed.yaml --as system:serviceaccount:ops:operator \
    --crd widgets-crd.yaml --permissions permissions/ --grants rbac/ -o json

  # Would this policy let alice make the change?
  kubectl fieldperm review --old deployment.yaml --new scaled.yaml --as alice --grants rbac.yaml --policies policy.yaml

  # Decided by the authorizers of fieldperm-webhook.
  kubectl fieldperm review -f admission-review.json --authorization-config authorization.yaml

  # The AdmissionReview that a webhook was sent, decided by the cluster's own grants.
  kubectl fieldperm review -f admission-review.json --context production`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", `AdmissionReview (admission.k8s.io/v1), JSON or YAML; "-" reads standard input`)
	flags.StringVar(&o.oldFile, "old", "", `object before the change, JSON or YAML; without it the request is a CREATE`)
	flags.StringVar(&o.newFile, "new", "", `object after the change, JSON or YAML; without it the request is a DELETE`)
	flags.StringVar(&o.as, "as", "", `user who makes the change: a name, or system:serviceaccount:NAMESPACE:NAME`)
	flags.StringArrayVar(&o.asGroups, "as-group", nil, `group of that user; may be given several times. system:authenticated is added`)
	flags.StringVar(&o.resource, "resource", "", `resource of the request, as apps/v1/deployments or v1/pods; guessed from the object's kind if not given`)
	flags.StringVar(&o.subresource, "subresource", "", `subresource of the request, such as status`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions`)
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings; they decide instead of a cluster`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies`)
	flags.StringVar(&o.authorizationConfig, "authorization-config", "", "`FILE` with the AuthorizationConfiguration of fieldperm-webhook, whose authorizers decide")
	flags.IntVar(&o.maxChecks, "max-checks", fieldperm.DefaultMaxChecks, `how many permission checks the request may cost`)
	flags.StringVarP(&o.output, "output", "o", outputTable, `table, json or yaml`)
	o.cluster.AddFlags(flags)
	if f := flags.Lookup("namespace"); f != nil {
		f.Usage = "namespace of an object that names none itself"
	}
	return cmd
}

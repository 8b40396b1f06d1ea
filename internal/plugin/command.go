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
var ErrDenied error = negative("the request is denied")

// negative is the error of an answer that was written and is no, or no yes: exit code 1.
type negative string

func (n negative) Error() string { return string(n) }

// ExitCode returns the exit code of the process: 0 for an answer that is yes, complete or without a finding, 1 for the opposite (negative), 2 if
// nothing was decided, or if the answer lacks what could not be read (ErrUnread). The output has been written for 0, 1 and ErrUnread.
func ExitCode(err error) int {
	var no negative
	switch {
	case err == nil:
		return 0
	case errors.As(err, &no):
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
		Long: `Decide on one write request as fieldperm's webhook would: which fields change, which verbs cover each change, and
whether the user holds them.

The request is an AdmissionReview (-f), or two states of an object: --old alone is a DELETE, --new alone a CREATE.
Without metadata.managedFields (kubectl get --show-managed-fields) changes of field owners are not judged.

Without --grants it needs create on subjectaccessreviews, and list on
customresourcedefinitions, apiservices, permissionschemas, uncoveredpermissionsets and conditionalpolicies. With
--grants, conditions of policies are not checked against the types of objects.

Run the command where the files are that --authorization-config names.

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
  kubectl fieldperm review -f admission-review.json --authorization-config authorization.yaml`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", `AdmissionReview (admission.k8s.io/v1), JSON or YAML; "-" is standard input`)
	flags.StringVar(&o.oldFile, "old", "", `object before the change; without it the request is a CREATE`)
	flags.StringVar(&o.newFile, "new", "", `object after the change; without it the request is a DELETE`)
	flags.StringVar(&o.as, "as", "", `user who makes the change, such as system:serviceaccount:NAMESPACE:NAME`)
	flags.StringArrayVar(&o.asGroups, "as-group", nil, `group of the user, besides system:authenticated; repeatable`)
	flags.StringVar(&o.resource, "resource", "", `resource of the request, such as apps/v1/deployments; guessed from the kind if not given`)
	flags.StringVar(&o.subresource, "subresource", "", `subresource of the request, such as status`)
	flags.StringSliceVar(&o.permissions, "permissions", nil, `files or directories with PermissionSchemas and UncoveredPermissionSets`)
	flags.StringSliceVar(&o.crds, "crd", nil, `files or directories with CustomResourceDefinitions`)
	flags.StringSliceVar(&o.grants, "grants", nil, `files or directories with Roles, ClusterRoles and bindings, in place of a cluster`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies`)
	flags.StringVar(&o.authorizationConfig, "authorization-config", "", "`FILE` with the AuthorizationConfiguration of fieldperm-webhook, whose authorizers decide")
	flags.IntVar(&o.maxChecks, "max-checks", fieldperm.DefaultMaxChecks, `how many permission checks the request may cost`)
	flags.StringVarP(&o.output, "output", "o", outputTable, `table, json, yaml or html`)
	o.cluster.AddFlags(flags)
	if f := flags.Lookup("namespace"); f != nil {
		f.Usage = "namespace of an object that names none itself"
	}
	completes(cmd, o, "table json yaml html")
	return cmd
}

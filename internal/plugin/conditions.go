package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/page"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/printable"
)

// listing is one call of the conditions command.
type listing struct {
	options
}

// NewConditionsCommand returns the conditions command. It writes the list to the streams' Out. The caller handles errors and the exit code;
// see ExitCode.
func NewConditionsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &listing{options{streams: streams, cluster: genericclioptions.NewConfigFlags(true)}}
	// --as is the user that the list is about. The requests to the cluster are sent as the user of the command.
	o.cluster.Impersonate, o.cluster.ImpersonateGroup, o.cluster.ImpersonateUID, o.cluster.ImpersonateUserExtra = nil, nil, nil, nil
	cmd := &cobra.Command{
		Use:   "conditions VERB (RESOURCE [NAME] | RESOURCE/NAME) [--as USER]",
		Short: "List the conditions under which a user may write",
		Long: `List the ConditionalPolicies about a verb of a user on a resource, in the order in which they count: Deny,
NoOpinion, Allow. What RBAC and other authorizers allow is not shown.

VERB is create, update, patch, delete, deletecollection, granular or a granular verb. RESOURCE is as in kubectl.

With --authorization-config its webhooks that return conditions are asked too: run the command where the files are
that it names. The first authorizer that allows or denies decides.

Needs list on conditionalpolicies.

Ends with 0 if the list was written, 2 if not, as when nothing is about the request.`,
		Example: `  # Under which conditions may I create PersistentVolumes?
  kubectl fieldperm conditions create persistentvolumes

  # Under which conditions may the scaler scale this Deployment?
  kubectl fieldperm conditions granular:scale deployments/web --subresource scale -n shop --as scaler

  # What do the webhooks of fieldperm-webhook say as well?
  kubectl fieldperm conditions update deployments/web -n shop --as scaler --authorization-config authorization.yaml`,
		Args:          cobra.RangeArgs(2, 3),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          onObject(func(cmd *cobra.Command, verb, object string) error { return o.run(cmd.Context(), verb, object) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.as, "as", "", `user to answer about, such as system:serviceaccount:NAMESPACE:NAME`)
	flags.StringArrayVar(&o.asGroups, "as-group", nil, `group of the user, besides system:authenticated; repeatable`)
	flags.StringVar(&o.subresource, "subresource", "", `subresource of the request, such as scale`)
	flags.StringSliceVar(&o.policyFiles, "policies", nil, `files or directories with ConditionalPolicies, in place of those of the same name`)
	flags.StringVar(&o.authorizationConfig, "authorization-config", "", "`FILE` with the AuthorizationConfiguration of fieldperm-webhook, whose webhooks are asked")
	flags.StringVarP(&o.output, "output", "o", outputTable, `table, json, yaml or html`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "table json yaml html", verbsOfWrites, kinds)
	return cmd
}

func (o *listing) run(ctx context.Context, verb, resource string) error {
	if err := o.outputIs(outputTable, outputJSON, outputYAML, outputHTML); err != nil {
		return err
	}
	if o.as == "" && len(o.asGroups) > 0 {
		return errors.New("--as-group is given without --as: name the user")
	}
	config, err := o.config()
	if err != nil {
		return err
	}
	attributes, err := o.attributes(ctx, verb, resource)
	if err != nil {
		return err
	}
	set, err := o.policies(ctx)
	if err != nil {
		return err
	}
	rows := rowsOfPolicies(set.Describe(ctx, attributes))
	if o.authorizationConfig != "" {
		chain, err := o.configured(ctx, config)
		if err != nil {
			return err
		}
		rows = append(rows, ofWebhooks(ctx, chain.Conditional(), attributes)...)
	}
	if err := nothingListed(rows); err != nil {
		return err
	}
	return o.print(rows)
}

// attributes returns the request that the list is about.
func (o *listing) attributes(ctx context.Context, verb, text string) (authorizer.Attributes, error) {
	named, name, _ := strings.Cut(text, "/")
	mapper, err := o.cluster.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	full, short := runtimeschema.ParseResourceArg(named)
	partial := short.WithVersion("")
	if full != nil {
		partial = *full
	}
	resource, err := mapper.ResourceFor(partial)
	if err != nil && full != nil {
		resource, err = mapper.ResourceFor(short.WithVersion(""))
	}
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w: name one that kubectl api-resources lists", named, err)
	}
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w: name one that kubectl api-resources lists", named, err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("resource %q: %w: name one that kubectl api-resources lists", named, err)
	}
	out := authorizer.AttributesRecord{
		Verb: verb, APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource, Subresource: o.subresource, Name: name, ResourceRequest: true,
	}
	if verb == "create" && o.subresource == "" {
		out.Name = "" // In the authorization phase an API server does not know it.
	}
	if mapping.Scope.Name() != "root" {
		if out.Namespace, _, err = o.cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return nil, fmt.Errorf("cluster: %w: give --namespace", err)
		}
	}
	out.User, err = o.subject(ctx)
	return out, err
}

// ofPolicies is the authorizer of the rows of policies.
const ofPolicies = policies.Name

// listed is a condition in the output. Its JSON is a contract.
type listed struct {
	Authorizer string `json:"authorizer"`
	// Policy is the name of the policy, or the id of the condition of a webhook, "" for a decision without conditions.
	Policy      string `json:"policy"`
	Effect      string `json:"effect"`
	Condition   string `json:"condition,omitempty"`
	Error       string `json:"error,omitempty"`
	Description string `json:"description,omitempty"`
}

func rowsOfPolicies(list []policies.Description) []listed {
	rows := make([]listed, len(list))
	for i, d := range list {
		rows[i] = listed{Authorizer: ofPolicies, Policy: d.Policy, Effect: d.Effect, Condition: d.Condition, Description: d.Description}
		if d.Err != nil {
			rows[i].Error = d.Err.Error()
		}
	}
	return rows
}

func (o *listing) print(rows []listed) error {
	switch o.output {
	case outputJSON, outputYAML:
		text, err := encoded(map[string]any{"conditions": rows}, o.output)
		if err != nil {
			return err
		}
		return o.write(text)
	}
	if len(rows) == 0 && o.output != outputHTML {
		none := "No policy is about it."
		if o.authorizationConfig != "" {
			none = "No policy and no webhook that returns conditions is about it."
		}
		return o.write([]byte(none + " RBAC and the other authorizers decide.\n"))
	}
	t := page.Table{}
	add := func(effect, of, policy, condition, description string) []string {
		cells := []string{effect, policy, condition, description}
		if o.authorizationConfig != "" {
			cells = slices.Insert(cells, 1, of)
		}
		return cells
	}
	t.Columns = add("EFFECT", "AUTHORIZER", "POLICY", "CONDITION", "DESCRIPTION")
	for _, r := range rows {
		condition := r.Condition
		if r.Error != "" {
			condition = "error: " + r.Error
		}
		t.Rows = append(t.Rows, add(r.Effect, r.Authorizer, r.Policy, strings.Join(strings.Fields(condition), " "), r.Description))
	}
	return o.writeTables("Conditions", page.Notes{}, t)
}

// shown is a text of others in a cell, "-" for none.
func shown(text string) string { return cmp.Or(printable.Text(text), "-") }

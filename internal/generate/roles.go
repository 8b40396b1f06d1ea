package generate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/internal/fieldrole"
	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// rolesOptions are the flags of roles.
type rolesOptions struct {
	kind, old, after string
	fields           []string
	files            sourceFiles
	verbs            []string
	role             fieldrole.Role
	options          fieldrole.Options
	packages         packagesOptions
	in               io.Reader
	// kinds are made of the files.
	kinds *fieldrole.Kinds
}

func newRoles() *cobra.Command {
	o := &rolesOptions{}
	command := &cobra.Command{
		Use:   "roles (--kind KIND --field PATH... | [--old FILE] --new FILE | paths=PACKAGES)",
		Short: "Write the least Role for fields, a change or a controller",
		Long: `roles writes the least role: the marker granular with get, and the fewest and most specific verbs that are enough.
It asks no cluster.

With --kind and --field the role is for any change of the fields. A field is a path as in a PermissionSchema
(.spec.template.spec.containers[*].image, .metadata.labels["example.com/*"]) or in a denial
(.spec.template.spec.containers[name="web"].image).

With --old and --new the role is for this change; without --old the object is created.

With paths=PACKAGES it reads the markers of a controller, beside those of kubebuilder:

  // +fieldperm:rbac:groups=apps,resources=deployments,fields=.spec.replicas;.metadata.labels["example.com/*"]

It writes role.yaml, as controller-gen rbac does, and role-fieldperm.yaml, with granular verbs in place of update
and patch.

Ends with 1 for an error.`,
		Example: `  # A role for the replicas and one label of Deployments, through the subresource scale too.
  fieldperm-gen roles --kind apps/v1/Deployment --field .spec.replicas \
    --field '.metadata.labels["example.com/tier"]' --subresource scale

  # A role for one change.
  fieldperm-gen roles --old before.yaml --new after.yaml

  # Both roles of a controller.
  fieldperm-gen roles paths=./... --role-name manager-role --crd config/crd/bases --out config/rbac`,
		RunE: func(command *cobra.Command, args []string) error {
			o.in = command.InOrStdin()
			if len(args) > 0 {
				return o.fromMarkers(command, args)
			}
			return o.fromFlags(command)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.kind, "kind", "", "`KIND` of the objects, as GROUP/VERSION/KIND")
	flags.StringArrayVar(&o.fields, "field", nil, "`PATH` of a field; repeatable")
	flags.StringVar(&o.old, "old", "", "`FILE` with the object before the change, - for standard input")
	flags.StringVar(&o.after, "new", "", "`FILE` with the object after the change, - for standard input")
	flags.StringSliceVar(&o.options.Subresources, "subresource", nil, "`NAME` of a subresource that writes the fields; repeatable")
	flags.BoolVar(&o.options.Only, "only-subresources", false, "leave out the rule for the resource itself")
	flags.StringSliceVar(&o.verbs, "verbs", []string{"update"}, "`VERBS` to grant: create and update through fields, others as they are")
	flags.BoolVar(&o.options.Wildcard, "allow-wildcard", false, "grant granular:* if no other verb covers a field")
	flags.StringVar(&o.role.Name, "role-name", "", "`NAME` of the role; depends on what it grants if not given")
	flags.StringVar(&o.role.Namespace, "namespace", "", "`NAMESPACE` of the Role")
	flags.BoolVar(&o.role.Cluster, "cluster", false, "write a ClusterRole")
	flags.StringSliceVar(&o.role.ResourceNames, "resource-name", nil, "`NAME` of an object; all if not given")
	o.files.flags(flags)
	o.packages.flags(flags)
	return command
}

// load compiles the files.
func (o *rolesOptions) load(warnings io.Writer) error {
	documents, compiled, err := o.files.compile(warnings)
	if err != nil {
		return err
	}
	o.kinds = fieldrole.New(compiled, documents)
	return nil
}

// fromFlags writes a role for fields or for a change.
func (o *rolesOptions) fromFlags(command *cobra.Command) error {
	if err := o.validate(command); err != nil {
		return err
	}
	if err := o.load(command.ErrOrStderr()); err != nil {
		return err
	}
	var rules []*fieldrole.Rule
	var err error
	if o.after != "" {
		rules, err = o.change(command.Context())
	} else {
		rules, err = o.forFields(command.Context())
	}
	if err != nil {
		return err
	}
	if err := o.scope(rules[0].Target); err != nil {
		return err
	}
	out, err := o.role.Manifest(rules)
	if err != nil {
		return err
	}
	_, err = command.OutOrStdout().Write(out)
	return err
}

func (o *rolesOptions) validate(command *cobra.Command) error {
	switch {
	case o.packages.given(command):
		return errors.New("--out, --header-file, --year and --load-build-tags are about packages: add paths=./..., or leave them out")
	case o.after == "" && o.old == "" && o.kind == "" && len(o.fields) == 0:
		return errors.New("fields are missing: give --kind and --field, or --old and --new, or paths=PACKAGES")
	case (o.old != "" || o.after != "") && (o.kind != "" || len(o.fields) > 0 || len(o.options.Subresources) > 0 || o.options.Only):
		return errors.New("--old and --new are about one change, and --kind, --field and --subresource about fields: drop one of the two")
	case o.old != "" && o.after == "":
		return errors.New("--new is missing: no granular verb covers a deletion: give the object after the change, or grant delete")
	case o.old == "-" && o.after == "-":
		return errors.New("--old and --new are both standard input: name a file for one of them")
	case o.after == "" && o.kind == "":
		return errors.New("--kind is missing: name the kind of the fields, such as apps/v1/Deployment")
	case o.after == "" && len(o.fields) == 0:
		return errors.New("--field is missing: name a field, such as .spec.replicas")
	case o.options.Only && len(o.options.Subresources) == 0:
		return errors.New("--only-subresources leaves nothing: add --subresource")
	case o.role.Cluster && o.role.Namespace != "":
		return errors.New("--cluster makes a ClusterRole, which has no namespace: leave out one of --cluster and --namespace")
	}
	for _, verb := range o.verbs {
		switch {
		case verb == "create":
			o.role.Create = true
		case verb == "update", verb == "patch":
		case verb == "*" || strings.HasPrefix(verb, "granular"):
			return fmt.Errorf("--verbs %q: would grant more than the fields: name get, list, watch, create, update, patch, delete or deletecollection", verb)
		default:
			o.role.Verbs = append(o.role.Verbs, verb)
		}
	}
	return nil
}

func (o *rolesOptions) forFields(ctx context.Context) ([]*fieldrole.Rule, error) {
	t, err := o.kinds.Find(o.kind)
	if err != nil {
		return nil, fmt.Errorf("--kind: %w", err)
	}
	rules, err := t.Fields(ctx, o.fields, o.options)
	if err != nil {
		return nil, fmt.Errorf("--field: %w", err)
	}
	for _, rule := range rules {
		rule.Updates = slices.Contains(o.verbs, "update") || slices.Contains(o.verbs, "patch")
	}
	return rules, nil
}

func (o *rolesOptions) change(ctx context.Context) ([]*fieldrole.Rule, error) {
	after, err := o.object("--new", o.after)
	if err != nil {
		return nil, err
	}
	var before *unstructured.Unstructured
	if o.old != "" {
		if before, err = o.object("--old", o.old); err != nil {
			return nil, err
		}
	}
	o.role.Create = o.role.Create || before == nil
	if o.role.Namespace == "" && !o.role.Cluster {
		o.role.Namespace = after.GetNamespace()
	}
	if name := after.GetName(); len(o.role.ResourceNames) == 0 && name != "" {
		o.role.ResourceNames = []string{name}
	}
	return o.kinds.Change(ctx, before, after, o.options)
}

// object reads the only object of a file.
func (o *rolesOptions) object(flag, file string) (*unstructured.Unstructured, error) {
	var raw []byte
	var err error
	if file == "-" {
		raw, err = io.ReadAll(o.in)
	} else {
		raw, err = os.ReadFile(file) //nolint:gosec // The user of the command chooses the path.
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read: %w: give a file", flag, err)
	}
	parts, err := manifest.Documents(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %q: %w", flag, file, err)
	case len(parts) != 1:
		return nil, fmt.Errorf("%s %q: has %d documents: give one", flag, file, len(parts))
	}
	out := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(parts[0], &out.Object); err != nil || out.GetKind() == "" || out.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%s %q: is no Kubernetes object: give it an apiVersion and a kind", flag, file)
	}
	return out, nil
}

// scope makes a ClusterRole for objects without a namespace.
func (o *rolesOptions) scope(t *fieldrole.Target) error {
	clusterScoped := endpoint.ClusterScoped(t.Group, t.Resource)
	scopes, err := definitions(o.files.all())
	if err != nil {
		return err
	}
	if d, known := scopes[t.GroupKind()]; known {
		clusterScoped = d.scope == "Cluster"
	}
	if clusterScoped && o.role.Namespace != "" && t.Resource != "namespaces" {
		return fmt.Errorf("--namespace %q: objects of %s have no namespace: leave it out", o.role.Namespace, t.Kind)
	}
	o.role.Cluster = o.role.Cluster || clusterScoped
	return nil
}

package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fieldperm/fieldperm/internal/configfile"
)

// Probes send requests to the servers in the configuration. Each function returns one error for each server that does not answer as
// it should; the error names the server and ends with the cure. If the function that --probe needs is nil, --probe is
// refused.
type Probes struct {
	// Webhooks asks every webhook of a chain, at both endpoints if it returns conditions. Errors name the place in the file. cluster is the connection for InClusterConfig, nil if the chain has none.
	Webhooks func(ctx context.Context, chain *configfile.Authorization, cluster *rest.Config) []error
	// Issuers asks every issuer for its discovery document and its keys.
	Issuers func(ctx context.Context, configuration *apiserver.AuthenticationConfiguration) []error
}

// Faults are all faults of the files.
type Faults []error

// Error returns a line with the number of faults, then one line for each fault.
func (f Faults) Error() string {
	count := "1 fault"
	if len(f) != 1 {
		count = fmt.Sprintf("%d faults", len(f))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "configuration has %s", count)
	for i, err := range f {
		fmt.Fprintf(&out, "%s\n%v", map[bool]string{true: ":"}[i == 0], err)
	}
	return out.String()
}

// Unwrap returns the faults.
func (f Faults) Unwrap() []error { return f }

// flags are the flags of one run.
type flags struct {
	authorization, authentication, kubeconfig string
	schemas                                   []string
	probe                                     bool
	probes                                    Probes
}

// NewCommand returns check-config. The caller must print its error once; the error has one line for each fault.
func NewCommand(probes Probes) *cobra.Command {
	f := flags{probes: probes}
	command := &cobra.Command{
		Use:   "check-config [--authorization-config FILE] [--authentication-config FILE] [--permission-schemas FILES]",
		Short: "Validate configuration and permission schemas without serving",
		Long: `check-config reads files as serve does, and serves nothing. Of valid files it prints a summary and warnings about
probable mistakes, otherwise the faults with file, line and cure.

With --probe it also sends requests: each webhook must answer a review, and evaluate or refuse a condition if it
returns conditions; each issuer must return its discovery document and its keys.

Ends with 0 if the files are valid, 1 if not.`,
		Example: `  # In the CI of the repository that has the files.
  fieldperm-webhook check-config --authorization-config authorization.yaml \
    --authentication-config authentication.yaml --permission-schemas schemas/

  # On the host, before the files are put in force.
  fieldperm-webhook check-config --authorization-config authorization.yaml --probe --kubeconfig fieldperm.kubeconfig`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("argument %q: check-config takes flags only: name files with --authorization-config, --authentication-config or --permission-schemas", args[0])
			}
			return nil
		},
		// The output is text for people and not a log, so no logging is set up.
		PersistentPreRun: func(*cobra.Command, []string) {},
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command.Context(), command.OutOrStdout())
		},
		SilenceUsage: true,
	}
	fs := command.Flags()
	fs.StringVar(&f.authorization, "authorization-config", "", "`FILE` with fieldperm's AuthorizationConfiguration, v1 or v1beta1.")
	fs.StringVar(&f.authentication, "authentication-config", "", "`FILE` with the AuthenticationConfiguration of the review API, v1, v1beta1 or v1alpha1.")
	fs.StringSliceVar(&f.schemas, "permission-schemas", nil, "`FILES` or directories with CustomResourceDefinitions, PermissionSchemas and UncoveredPermissionSets.")
	fs.BoolVar(&f.probe, "probe", false, "Also ask the webhooks and the issuers of the files.")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "Kubeconfig with which --probe asks a webhook with InClusterConfig; in-cluster configuration if empty.")
	return command
}

// report is the summary of a valid file.
type report struct {
	title           string
	lines, warnings []string
}

func (f *flags) run(ctx context.Context, out io.Writer) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if f.authorization == "" && f.authentication == "" && len(f.schemas) == 0 {
		return errors.New("no file to check: give --authorization-config, --authentication-config or --permission-schemas")
	}
	if f.kubeconfig != "" && !f.probe {
		return errors.New("--kubeconfig has no meaning without --probe: add --probe, or leave --kubeconfig out")
	}
	var faults Faults
	var reports []report
	for _, check := range []func(context.Context) (*report, []error){f.chain, f.issuers, f.permissions} {
		one, errs := check(ctx)
		faults = append(faults, errs...)
		if one != nil {
			reports = append(reports, *one)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, one := range reports {
		fmt.Fprintf(out, "%s\n", one.title)
		for _, line := range one.lines {
			fmt.Fprintf(out, "  %s\n", line)
		}
		for _, warning := range one.warnings {
			fmt.Fprintf(out, "  warning: %s\n", warning)
		}
	}
	return nil
}

func (f *flags) chain(ctx context.Context) (*report, []error) {
	if f.authorization == "" {
		return nil, nil
	}
	data, err := os.ReadFile(f.authorization)
	if err != nil {
		return nil, []error{fmt.Errorf("--authorization-config: %w: name a file that can be read", err)}
	}
	loaded, err := configfile.LoadAuthorization(f.authorization, data)
	if err != nil {
		return nil, flatten(err)
	}
	if f.probe && f.probes.Webhooks == nil {
		return nil, []error{errors.New("--probe: webhooks cannot be asked by this program: leave --probe out")}
	}
	if f.probe {
		cluster, err := f.cluster(loaded.Configuration)
		if err != nil {
			return nil, []error{err}
		}
		if errs := f.probes.Webhooks(ctx, loaded, cluster); len(errs) > 0 {
			return nil, errs
		}
	}
	out := &report{title: "authorizers of " + f.authorization + ", in their order:", warnings: loaded.Warnings}
	for i, line := range configfile.SummaryOfChain(loaded) {
		out.lines = append(out.lines, fmt.Sprintf("%d. %s", i+1, line))
	}
	return out, nil
}

// cluster returns the connection to kube-apiserver for InClusterConfig, nil if no authorizer uses it.
func (f *flags) cluster(configuration *apiserver.AuthorizationConfiguration) (*rest.Config, error) {
	for i := range configuration.Authorizers {
		webhook := configuration.Authorizers[i].Webhook
		if webhook == nil || webhook.ConnectionInfo.Type != apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
			continue
		}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}, &clientcmd.ConfigOverrides{}).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w: --probe asks for authorizer %q with InClusterConfig: give a kubeconfig, or run in a cluster", err, configuration.Authorizers[i].Name)
		}
		return config, nil
	}
	return nil, nil
}

func (f *flags) issuers(ctx context.Context) (*report, []error) {
	if f.authentication == "" {
		return nil, nil
	}
	data, err := os.ReadFile(f.authentication)
	if err != nil {
		return nil, []error{fmt.Errorf("--authentication-config: %w: name a file that can be read", err)}
	}
	configuration, warnings, err := configfile.LoadAuthentication(f.authentication, data)
	if err != nil {
		return nil, flatten(err)
	}
	if f.probe && f.probes.Issuers == nil {
		return nil, []error{errors.New("--probe: issuers cannot be asked by this program: leave --probe out")}
	}
	if f.probe {
		if errs := f.probes.Issuers(ctx, configuration); len(errs) > 0 {
			return nil, errs
		}
	}
	return &report{title: "issuers of " + f.authentication + ":", lines: configfile.SummaryOfIssuers(configuration), warnings: warnings}, nil
}

// flatten splits joined errors.
func flatten(err error) []error {
	var parts []error
	switch joined := err.(type) { //nolint:errorlint // The type of this error counts, not the type of an error that it wraps.
	case interface{ Unwrap() []error }:
		parts = joined.Unwrap()
	case utilerrors.Aggregate:
		parts = joined.Errors()
	default:
		return []error{err}
	}
	var out []error
	for _, err := range parts {
		out = append(out, flatten(err)...)
	}
	return out
}

package server

import (
	"fmt"

	"github.com/spf13/cobra"
	genericserver "k8s.io/apiserver/pkg/server"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // The import registers --logging-format json.

	"github.com/fieldperm/fieldperm/internal/authn"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/preflight"
)

// NewCommand returns the command fieldperm-webhook.
func NewCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "fieldperm-webhook",
		Short: "Per-field write permission for Kubernetes",
		Long: `fieldperm-webhook decides, for a kube-apiserver, which fields of an object a user may write.
Users are granted the verbs "granular" and "granular:<verb>" in RBAC or any other authorizer.`,
	}
	root.AddCommand(newServeCommand(), newReleaseCommand(), preflight.NewCommand(preflight.Probes{
		Webhooks: authz.Probe,
		Issuers:  authn.Probe,
	}))
	return root
}

func newServeCommand() *cobra.Command {
	options := NewOptions()
	logging := logsapi.NewLoggingConfiguration()
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Serve the admission and authorization webhooks",
		Long: `serve answers by HTTPS:

  /admit/granular      admission webhook for users without the generic permission
  /admit/uncovered     admission webhook for all users, on resources with barriers
  /admit/schemas       admission webhook that refuses permission schemas which do not compile
  /authorize           authorization webhook: lets holders of "granular" in
  /authorize/DIALECT   the same with conditions (KEP-5681), which /conditions/DIALECT evaluates. DIALECT is
                       conditionsChain, conditionSetChain or conditionalDecision
  /review              the verbs that a write needs
  /permissions         the verbs of every kind
  /livez, /healthz, /readyz, /metrics

/authorize lets no user in while it is not proven, on each kube-apiserver of --api-servers, that admission is
enforced: /readyz/enforcement gives the reason. In a Pod use /readyz?exclude=enforcement.

All but the health checks need a client certificate of --client-ca-file, or what --admission-callers,
--authentication-config and --webhook-token-users accept in its place.`,
		Example: `  # Beside a kube-apiserver that has the webhook granular as a static manifest.
  fieldperm-webhook serve --kubeconfig fieldperm.kubeconfig --api-servers own --bind-address 127.0.0.1 \
    --tls-cert-file serving.crt --tls-private-key-file serving.key --client-ca-file ca.crt \
    --uncovered-configuration fieldperm-uncovered --webhook-url https://127.0.0.1:9443 --webhook-ca-file ca.crt

  # In the cluster, with webhooks that are objects and a certificate that fieldperm keeps itself.
  fieldperm-webhook serve --client-ca-file client-ca.crt --tls-secret fieldperm-system/fieldperm-tls \
    --webhook-configuration fieldperm --uncovered-configuration fieldperm-uncovered`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return fmt.Errorf("logging flags: %w", err)
			}
			ctx := genericserver.SetupSignalContext()
			s, err := options.Complete(ctx)
			if err != nil {
				return err
			}
			return s.Run(ctx)
		},
	}
	options.AddFlags(serve.Flags())
	logsapi.AddFlags(logging, serve.Flags())
	return serve
}

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
		Long: `Serves, by HTTPS:

  /admit/granular    ValidatingAdmissionWebhook for users without the generic verb
  /admit/uncovered   ValidatingAdmissionWebhook for all users, on resources with barriers
  /admit/schemas     ValidatingAdmissionWebhook that refuses permission schemas which do not compile
  /authorize         authorization webhook (SubjectAccessReview): lets holders of "granular" in
  /authorize/DIALECT the same for callers that handle conditions (KEP-5681): returns conditions instead
  /conditions/DIALECT evaluates these conditions (AuthorizationConditionsReview). DIALECT is conditionsChain,
                     conditionSetChain or conditionalDecision
  /review            the verbs that a write needs, for the caller or for another user
  /permissions       the verbs of every kind
  /ui                the same as a page for a browser
  /livez /healthz    the process is alive
  /readyz            it is ready: the checks schemas, discovery, certificate, authorization, interlock, shutdown
  /metrics           Prometheus metrics

Proof of enforcement: /authorize lets no user in before probes have proven, on every kube-apiserver of
--api-servers, that admission refuses what fieldperm refuses. The probes are repeated every --interlock-interval.
While enforcement is not proven, holders of "granular" get a 403, and /readyz/interlock gives the reason and the
cure. In a Pod, use /readyz?exclude=interlock: without an endpoint no probe comes back.

All endpoints but the health checks need a client certificate of a CA in --client-ca-file. With
--admission-callers any, /admit needs none. With --authentication-config, /review, /permissions and /ui also
accept a bearer token. /admit, /authorize and /conditions accept those of --webhook-token-users. fieldperm-gen manifests writes the
configuration of the kube-apiserver.`,
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

package server

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const (
	// releaseTimeout is longer than the default of --release-delay.
	releaseTimeout = 5 * time.Minute
	releaseLook    = time.Second
)

func newReleaseCommand() *cobra.Command {
	var kubeconfig, name string
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "release",
		Short: "Delete the webhook configuration and wait until it is gone",
		Long: `release deletes the ValidatingWebhookConfiguration that makes kube-apiservers ask fieldperm, and waits until
fieldperm, which must run, lets go of it. From then on "granular" lets no request in, and none that it let in is
under way: the rest of the installation can be deleted in any order.

Ends with 1 for an error.`,
		Example: `  fieldperm-webhook release --kubeconfig admin.kubeconfig`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("--kubeconfig: %w: give a kubeconfig, or run in a cluster", err)
			}
			clients, err := kubernetes.NewForConfig(client(config, "release"))
			if err != nil {
				return fmt.Errorf("client of the API server: %w", err)
			}
			ctx, cancel := context.WithTimeout(genericserver.SetupSignalContext(), timeout)
			defer cancel()
			return release(ctx, clients.AdmissionregistrationV1().ValidatingWebhookConfigurations(), name)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "Kubeconfig of a user with get and delete on the configuration; in-cluster configuration if empty.")
	command.Flags().StringVar(&name, "webhook-configuration", webhooks.RESTName, "Name of the ValidatingWebhookConfiguration.")
	command.Flags().DurationVar(&timeout, "timeout", releaseTimeout, "How long to wait: more than --release-delay of serve.")
	return command
}

func release(ctx context.Context, configurations admissionregistrationclient.ValidatingWebhookConfigurationInterface, name string) error {
	before, err := configurations.Get(ctx, name, metav1.GetOptions{})
	log := klog.FromContext(ctx)
	if apierrors.IsNotFound(err) {
		log.Info("There is no such webhook configuration: nothing to release", "configuration", name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("webhook configuration %q: %w", name, err)
	}
	uid := before.UID
	if err := configurations.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("webhook configuration %q: %w", name, err)
	}
	log.Info("The webhook configuration is deleted: waiting until fieldperm lets go of it, which takes --release-delay of serve", "configuration", name)
	err = wait.PollUntilContextCancel(ctx, releaseLook, true, func(ctx context.Context) (bool, error) {
		return gone(ctx, configurations, name, uid), nil
	})
	if err != nil {
		return fmt.Errorf("webhook configuration %q: is deleted, but fieldperm has not let go of it: see that fieldperm runs and may update it; it goes on enforcing until then (%w)", name, err)
	}
	log.Info("The webhook configuration is released", "configuration", name)
	return nil
}

// gone reports whether the object with that UID no longer exists. On an error the answer is unknown.
func gone(ctx context.Context, configurations admissionregistrationclient.ValidatingWebhookConfigurationInterface, name string, uid types.UID) bool {
	current, err := configurations.Get(ctx, name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && current.UID != uid
}

package plugin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/internal/version"
)

// versions is one call of the version command.
type versions struct {
	options
	clientOnly bool
}

// NewVersionCommand returns the version command. It writes the versions to the streams' Out. The caller handles errors and the exit code; see
// ExitCode.
func NewVersionCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &versions{options: options{streams: streams, cluster: genericclioptions.NewConfigFlags(true), instead: "give --client"}}
	o.cluster.Namespace = nil
	cmd := &cobra.Command{
		Use:   "version [--client]",
		Short: "Print the versions of this command and of the cluster",
		Long: `Print the versions of this command, of the fieldperm-webhook of the cluster, and of kube-apiserver.

That of fieldperm-webhook is the one that last wrote the webhook configuration ` + webhooks.UncoveredName + `, which
needs get on it.

Ends with 0 if all versions were found, 2 if one was not.`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.clientOnly, "client", false, `ask no cluster`)
	flags.StringVarP(&o.output, "output", "o", outputText, `text, json or yaml`)
	o.cluster.AddFlags(flags)
	completes(cmd, &o.options, "text json yaml")
	return cmd
}

// found are versions, and why one is missing.
type found struct {
	Client     string `json:"clientVersion"`
	Server     string `json:"serverVersion,omitempty"`
	Kubernetes string `json:"kubernetesVersion,omitempty"`
	// Missing says why the version of the server is not known, "" if it is.
	Missing string `json:"missing,omitempty"`
}

const unrecorded = "unknown (it was built without a version)"

func (o *versions) run(ctx context.Context) error {
	if err := o.outputIs(outputText, outputJSON, outputYAML); err != nil {
		return err
	}
	all := found{Client: cmp.Or(version.Built(), unrecorded)}
	if !o.clientOnly {
		if err := o.ask(ctx, &all); err != nil {
			return err
		}
	}
	if err := o.print(&all); err != nil {
		return err
	}
	if all.Missing != "" {
		return ErrUnread
	}
	return nil
}

// ask adds the versions of the cluster.
func (o *versions) ask(ctx context.Context, to *found) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or %s", err, o.withoutCluster())
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or %s", err, o.withoutCluster())
	}
	to.Kubernetes = server.GitVersion
	live, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhooks.UncoveredName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		to.Missing = fmt.Sprintf("there is no webhook configuration %q: fieldperm is not installed, or has never run", webhooks.UncoveredName)
	case err != nil:
		to.Missing = fmt.Sprintf("webhook configuration %q: %v: allow to get it", webhooks.UncoveredName, err)
	default:
		to.Server = cmp.Or(live.Annotations[webhooks.WriterAnnotation], unrecorded)
	}
	return nil
}

func (o *versions) print(all *found) error {
	if o.output != outputText {
		text, err := encoded(all, o.output)
		if err != nil {
			return err
		}
		return o.write(text)
	}
	text := fmt.Appendf(nil, "Client Version: %s\n", all.Client)
	if all.Kubernetes != "" {
		text = fmt.Appendf(text, "Server Version: %s\nKubernetes Version: %s\n", cmp.Or(all.Server, "unknown: "+all.Missing), all.Kubernetes)
	}
	return o.write(text)
}

package gencmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators"
)

type manifestFlags struct {
	out, caFile string
	schemas     []string
	options     generators.Options
}

func newManifests() *cobra.Command {
	var flags manifestFlags
	command := &cobra.Command{
		Use:   "manifests --out DIR --url URL --ca-file FILE --config-dir DIR",
		Short: "Write the files that put fieldperm into a kube-apiserver",
		Long: `manifests writes into --out:

  authorization-configuration.yaml  for kube-apiserver --authorization-config: Node, RBAC, fieldperm
  admission-configuration.yaml      for kube-apiserver --admission-control-config-file
  admission/fieldperm.yaml          the static admission webhooks that the former names
  authorizer.kubeconfig             how kube-apiserver reaches fieldperm's authorizer
  admission.kubeconfig              what kube-apiserver shows to fieldperm's webhooks
  rbac.yaml, flowschema.yaml        for the cluster: what fieldperm's own user may do, and that it never queues

The files name each other, so that all but the last two must lie in --config-dir on the control plane.
Static webhooks need kube-apiserver 1.37 or later.

The webhook "uncovered" is for the resources with barriers only. They come from the built-in catalogue
and from --permission-schemas, so run this again when a schema there gains or loses a barrier. The
resource of a kind is that of its CustomResourceDefinition, otherwise guessed as Kubernetes does.`,
		Example: `  # fieldperm runs beside kube-apiserver; its files will lie in /etc/kubernetes/fieldperm.
  fieldperm-gen manifests --out ./fieldperm --url https://127.0.0.1:9443 --ca-file ca.crt \
    --config-dir /etc/kubernetes/fieldperm --permission-schemas ./crds,./uncovered.yaml`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command) },
	}
	f := command.Flags()
	f.StringVar(&flags.out, "out", "", "`DIR` to write into; made if it is missing")
	f.StringVar(&flags.options.ServiceURL, "url", "", "`URL` at which kube-apiserver reaches fieldperm, such as https://127.0.0.1:9443")
	f.StringVar(&flags.caFile, "ca-file", "", "`FILE` with the PEM certificates that signed fieldperm's serving certificate")
	f.StringVar(&flags.options.ConfigDir, "config-dir", "", "absolute `DIR` on the control plane where the files will lie")
	f.StringVar(&flags.options.ClientCertificateFile, "client-cert-file", "", "absolute `PATH` on the control plane of kube-apiserver's client certificate (default client.crt in --config-dir)")
	f.StringVar(&flags.options.ClientKeyFile, "client-key-file", "", "absolute `PATH` on the control plane of its key (default client.key in --config-dir)")
	f.StringVar(&flags.options.User, "user", generators.DefaultUser, "`NAME` of fieldperm's own user in the API server")
	f.StringSliceVar(&flags.schemas, "permission-schemas", nil, "`FILES` or directories with CustomResourceDefinitions, PermissionSchemas and UncoveredPermissionSets")
	f.DurationVar(&flags.options.AuthorizedTTL, "authorized-ttl", 0, "how long kube-apiserver keeps an Allow of fieldperm (default 10s)")
	f.DurationVar(&flags.options.UnauthorizedTTL, "unauthorized-ttl", 0, "how long kube-apiserver keeps fieldperm having no opinion (default 10s)")
	return command
}

func (f *manifestFlags) run(command *cobra.Command) error {
	var errs []error
	for _, required := range []struct{ flag, value, cure string }{
		{"out", f.out, "name the directory to write into"},
		{"url", f.options.ServiceURL, "give fieldperm's address, such as https://127.0.0.1:9443"},
		{"ca-file", f.caFile, "name the file of the certificates that signed fieldperm's serving certificate"},
		{"config-dir", f.options.ConfigDir, "name the absolute directory on the control plane where the files will lie"},
	} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("--%s is missing: %s", required.flag, required.cure))
		}
	}
	if (f.options.ClientCertificateFile == "") != (f.options.ClientKeyFile == "") {
		errs = append(errs, errors.New("--client-cert-file and --client-key-file belong together: give both or none"))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if f.options.CABundle, err = os.ReadFile(f.caFile); err != nil {
		return fmt.Errorf("--ca-file: %w", err)
	}
	if f.options.Uncovered, err = uncovered(f.schemas, command.ErrOrStderr()); err != nil {
		return err
	}
	files, err := generators.Manifests(f.options)
	if err != nil {
		return err
	}
	return write(f.out, files)
}

func write(dir string, files []generators.File) error {
	for _, file := range files {
		path := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	return nil
}

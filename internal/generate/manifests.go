package generate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

type manifestFlags struct {
	out, caFile, service string
	writeUncovered       bool
	schemas              []string
	options              generators.Options
}

func newManifests() *cobra.Command {
	var flags manifestFlags
	command := &cobra.Command{
		Use:   "manifests --out DIR --url URL --ca-file FILE --config-dir DIR [--rest [--service NAMESPACE/NAME]]",
		Short: "Write the files that put fieldperm into a kube-apiserver",
		Long: `manifests writes into --out, for the control plane:

  authorization-configuration.yaml  for kube-apiserver --authorization-config
  admission-configuration.yaml      for kube-apiserver --admission-control-config-file
  admission/fieldperm.yaml          the static webhook "granular"; not with --rest
  authorizer.kubeconfig             how kube-apiserver calls the authorizer
  admission.kubeconfig              what kube-apiserver shows to webhooks

and for the cluster:

  webhooks.yaml                     with --rest: the webhook "granular". Apply it first
  guard.yaml                        the policy that protects fieldperm's webhook configurations
  rbac.yaml                         for fieldperm's own user and the storage version migrator
  flowschema.yaml                   so that fieldperm's requests never queue

The files for the control plane must lie in --config-dir there.

Without --rest, fieldperm runs beside each kube-apiserver, 1.37 or later. With --service it runs in the cluster:
the hosts of the control plane must reach --url, such as the Service's cluster IP.

Ends with 1 for an error.`,
		Example: `  # fieldperm runs beside kube-apiserver; its files will lie in /etc/kubernetes/fieldperm.
  fieldperm-gen manifests --out ./fieldperm --url https://127.0.0.1:9443 --ca-file ca.crt \
    --config-dir /etc/kubernetes/fieldperm

  # fieldperm runs in the cluster, behind a Service with the cluster IP 10.96.0.20.
  fieldperm-gen manifests --out ./fieldperm --rest --service fieldperm-system/fieldperm --ca-file ca.crt \
    --url https://10.96.0.20 --config-dir /etc/kubernetes/fieldperm`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return flags.run(command) },
	}
	f := command.Flags()
	f.StringVar(&flags.out, "out", "", "`DIR` to write into; made if missing")
	f.StringVar(&flags.options.ServiceURL, "url", "", "`URL` at which kube-apiserver reaches fieldperm, such as https://127.0.0.1:9443; with --service, its authorizer only")
	f.StringVar(&flags.caFile, "ca-file", "", "`FILE` with the CAs of fieldperm's serving certificate, PEM")
	f.StringVar(&flags.options.ConfigDir, "config-dir", "", "absolute `DIR` of the files on the control plane")
	f.StringVar(&flags.options.ClientCertificateFile, "client-cert-file", "", "absolute `PATH` of kube-apiserver's client certificate on the control plane (default client.crt in --config-dir)")
	f.StringVar(&flags.options.ClientKeyFile, "client-key-file", "", "absolute `PATH` of its key (default client.key in --config-dir)")
	f.StringVar(&flags.options.User, "user", webhooks.DefaultUser, "`NAME` of fieldperm's own user in the API server")
	f.StringSliceVar(&flags.schemas, "permission-schemas", nil, "`FILES` or directories with CustomResourceDefinitions, PermissionSchemas and UncoveredPermissionSets, for --write-uncovered")
	f.DurationVar(&flags.options.AuthorizedTTL, "authorized-ttl", 0, "how long kube-apiserver keeps an Allow of fieldperm: less than --release-delay minus 73s (default 10s)")
	f.DurationVar(&flags.options.UnauthorizedTTL, "unauthorized-ttl", 0, "how long kube-apiserver keeps an answer without an opinion (default 10s)")
	f.DurationVar(&flags.options.ReleaseDelay, "release-delay", 0, "--release-delay of fieldperm-webhook serve (default 90s)")
	f.BoolVar(&flags.options.REST, "rest", false, "make the webhook \"granular\" an object of the cluster, not a static manifest")
	f.StringVar(&flags.service, "service", "", "Service `NAMESPACE/NAME[:PORT]` that the webhooks of --rest call, in place of --url")
	f.StringVar(&flags.options.TLSServerName, "tls-server-name", "", "with --service, `NAME` that the authorizer expects in fieldperm's certificate, in place of the host of --url")
	f.StringSliceVar(&flags.options.CABundleUsers, "ca-user", nil, "`USERS` who may change the CA bundle of the webhooks of --rest, besides fieldperm and cert-manager")
	f.BoolVar(&flags.writeUncovered, "write-uncovered", false, `with --rest, also write the webhook "uncovered", which fieldperm otherwise keeps itself`)
	return command
}

func (f *manifestFlags) run(command *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	var err error
	if f.options.CABundle, err = os.ReadFile(f.caFile); err != nil {
		return fmt.Errorf("--ca-file: %w", err)
	}
	if f.writeUncovered {
		if f.options.Uncovered, err = uncovered(f.schemas, command.ErrOrStderr()); err != nil {
			return err
		}
	}
	files, err := generators.Manifests(f.options)
	if err != nil {
		return err
	}
	return write(f.out, files)
}

// check reports flags that are missing or that exclude each other. The generator checks their values.
func (f *manifestFlags) check() error {
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
	if f.service != "" && !f.options.REST {
		errs = append(errs, errors.New("--service has no meaning without --rest: static manifests cannot call a Service: add --rest, or leave it out"))
	}
	if f.writeUncovered && !f.options.REST {
		errs = append(errs, errors.New("--write-uncovered has no meaning without --rest: beside a static manifest fieldperm keeps that webhook itself: leave it out"))
	}
	if !f.writeUncovered && len(f.schemas) > 0 {
		errs = append(errs, errors.New(`--permission-schemas has no meaning without --write-uncovered: fieldperm reads them and keeps the webhook "uncovered" itself: give them to fieldperm-webhook serve`))
	}
	if f.options.TLSServerName != "" && f.service == "" {
		errs = append(errs, errors.New("--tls-server-name has no meaning without --service: webhooks check the certificate against the host of --url: leave it out"))
	}
	service, err := parseService(f.service)
	if err != nil {
		errs = append(errs, err)
	}
	f.options.Service = service
	return errors.Join(errs...)
}

// parseService parses NAMESPACE/NAME[:PORT]. It returns nil for an empty text.
func parseService(text string) (*webhooks.ServiceReference, error) {
	if text == "" {
		return nil, nil
	}
	namespace, rest, found := strings.Cut(text, "/")
	name, number, numbered := strings.Cut(rest, ":")
	var port uint64
	var err error
	if numbered {
		port, err = strconv.ParseUint(number, 10, 16)
	}
	if !found || err != nil || numbered && port == 0 {
		return nil, fmt.Errorf("--service %q: is not of the form NAMESPACE/NAME or NAMESPACE/NAME:PORT: write it like fieldperm-system/fieldperm", text)
	}
	return &webhooks.ServiceReference{Namespace: namespace, Name: name, Port: int32(port)}, nil
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

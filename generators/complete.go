package generators

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// complete applies the defaults, and returns an error if an option is not valid.
func (o Options) complete() (Options, error) {
	o = o.defaults()
	o.ServiceURL = strings.TrimSuffix(o.ServiceURL, "/")
	errs := append(o.checkAddress(), o.checkFiles()...)
	return o, errors.Join(append(errs, o.checkObjects()...)...)
}

// completeCluster does the same for the options of files that are applied to the cluster.
func (o Options) completeCluster() (Options, error) {
	o = o.defaults()
	o.ServiceURL = strings.TrimSuffix(o.ServiceURL, "/")
	var errs []error
	if o.REST && o.Service == nil {
		errs = append(errs, o.checkURL())
	}
	if len(o.CABundle) > 0 {
		errs = append(errs, o.checkCA())
	}
	return o, errors.Join(append(errs, o.checkObjects()...)...)
}

func (o Options) defaults() Options {
	o.Options = o.WithDefaults()
	if o.ClientCertificateFile == "" && o.ClientKeyFile == "" {
		o.ClientCertificateFile, o.ClientKeyFile = path.Join(o.ConfigDir, "client.crt"), path.Join(o.ConfigDir, "client.key")
	}
	if o.AuthorizedTTL == 0 {
		o.AuthorizedTTL = defaultTTL
	}
	if o.UnauthorizedTTL == 0 {
		o.UnauthorizedTTL = defaultTTL
	}
	if o.ReleaseDelay == 0 {
		o.ReleaseDelay = webhooks.DefaultReleaseDelay
	}
	if u, err := url.Parse(o.ServiceURL); err == nil && o.Service != nil && o.TLSServerName == "" && net.ParseIP(u.Hostname()) != nil {
		o.TLSServerName = o.Service.Host()
	}
	return o
}

// checkAddress checks how kube-apiserver reaches fieldperm.
func (o Options) checkAddress() []error {
	errs := []error{o.checkURL(), o.checkCA()}
	if o.TLSServerName == "" {
		return errs
	}
	if o.Service == nil {
		errs = append(errs, fmt.Errorf("TLS server name %q: is for the authorizer alone, webhooks without a Service check the certificate against the host of the URL: name a Service, or leave it out", o.TLSServerName))
	}
	if len(validation.IsDNS1123Subdomain(o.TLSServerName)) > 0 {
		errs = append(errs, fmt.Errorf("TLS server name %q: is not a DNS name: give one that is in fieldperm's serving certificate", o.TLSServerName))
	}
	return errs
}

func (o Options) checkURL() error {
	u, err := url.Parse(o.ServiceURL)
	if err != nil {
		return fmt.Errorf("service URL %q: %w: write it as https://host:port", o.ServiceURL, err)
	}
	if u.Scheme != "https" || u.Hostname() == "" || o.ServiceURL != "https://"+u.Host {
		return fmt.Errorf("service URL %q: is not of the form https://host:port: kube-apiserver calls webhooks by TLS, and fieldperm's paths are added", o.ServiceURL)
	}
	return nil
}

func (o Options) checkCA() error {
	if err := checkCertificates(o.CABundle); err != nil {
		return fmt.Errorf("CA bundle: %w", err)
	}
	return nil
}

// checkFiles checks the options for files on the control plane.
func (o Options) checkFiles() []error {
	var errs []error
	for _, file := range []struct{ name, path string }{
		{"configuration directory", o.ConfigDir}, {"client certificate file", o.ClientCertificateFile}, {"client key file", o.ClientKeyFile},
	} {
		if !path.IsAbs(file.path) {
			errs = append(errs, fmt.Errorf("%s %q: is not absolute: kube-apiserver takes absolute paths only", file.name, file.path))
		}
	}
	if o.AuthorizedTTL < 0 || o.UnauthorizedTTL < 0 {
		errs = append(errs, fmt.Errorf("TTL %s or %s: is negative: give a short positive time", o.AuthorizedTTL, o.UnauthorizedTTL))
	}
	if longest := webhooks.LongestTTL(o.ReleaseDelay); o.AuthorizedTTL >= longest {
		cure := fmt.Sprintf("make it shorter than %s, or the release delay longer here and for fieldperm-webhook serve", longest)
		if longest <= 0 {
			cure = fmt.Sprintf("make the release delay longer than %s here and for fieldperm-webhook serve", o.AuthorizedTTL+webhooks.RequestTimeout+webhooks.ProofLife)
		}
		errs = append(errs, fmt.Errorf("authorized TTL %s: with the %s that a request may take and the %s that a proof may count it is not below the release delay of %s, so an Allow could outlive enforcement: %s",
			o.AuthorizedTTL, webhooks.RequestTimeout, webhooks.ProofLife, o.ReleaseDelay, cure))
	}
	return errs
}

// checkObjects checks the options for objects in the cluster.
func (o Options) checkObjects() []error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, user := range append([]string{o.User}, o.CABundleUsers...) {
		if user == "" || strings.ContainsFunc(user, unicode.IsControl) || strings.TrimSpace(user) != user {
			fault("user %q: is empty or has control characters or surrounding space: give the name as the API server knows it", user)
		}
	}
	if o.Service != nil {
		if !o.REST {
			fault("service %q: static manifests cannot call a Service: choose the REST configuration, or leave the service out", o.Service.Host())
		}
		if len(validation.IsDNS1123Label(o.Service.Namespace)) > 0 || len(validation.IsDNS1035Label(o.Service.Name)) > 0 || o.Service.Port < 0 || o.Service.Port > 65535 {
			fault("service %q in namespace %q, port %d: is none that can be: write it as NAMESPACE/NAME or NAMESPACE/NAME:PORT", o.Service.Name, o.Service.Namespace, o.Service.Port)
		}
	}
	if len(o.CABundleUsers) > 0 && !o.REST {
		fault("users of the CA bundle %q: beside a static manifest fieldperm itself writes the CA bundle: choose the REST configuration, or leave them out", o.CABundleUsers)
	}
	if len(o.Uncovered) > 0 && !o.REST {
		fault("uncovered rules: are kept by fieldperm itself beside a static manifest: choose the REST configuration, or leave them out")
	}
	for i, rule := range o.Uncovered {
		if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 {
			fault("uncovered rule %d: names no API group or no resource: name both, %q is the core group", i, "")
		}
	}
	return errs
}

package generators

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// DefaultUser is fieldperm's own user where it runs in the cluster.
const DefaultUser = "system:serviceaccount:fieldperm-system:fieldperm"

const (
	// defaultTTL is how long a kube-apiserver keeps an answer of /authorize. An Allow is an
	// over-grant from the moment at which admission no longer looks (A5), so it must not live long;
	// a NoOpinion is what a new grant waits for. Kubernetes' defaults are 5 minutes and 30 seconds.
	defaultTTL = 10 * time.Second

	// authorizeTimeout bounds one call of /authorize, which itself asks the API server for the marker.
	authorizeTimeout = 3 * time.Second

	// admitTimeoutSeconds bounds one call of /admit, which may ask for up to 32 verbs.
	admitTimeoutSeconds = 10
)

// Options say where fieldperm runs and where its files lie. The zero value is not valid.
type Options struct {
	// ServiceURL is where kube-apiserver reaches fieldperm, such as https://127.0.0.1:9443.
	ServiceURL string

	// CABundle holds the PEM certificates that fieldperm's serving certificate is checked against.
	CABundle []byte

	// ConfigDir is the absolute directory on the control plane where the files will lie.
	ConfigDir string

	// ClientCertificateFile and ClientKeyFile are absolute paths on the control plane of what
	// kube-apiserver shows to fieldperm. Empty: client.crt and client.key in ConfigDir.
	ClientCertificateFile, ClientKeyFile string

	// User is the name under which fieldperm calls the API server. Empty: DefaultUser.
	User string

	// Uncovered are the resources with barriers, in the terms of webhook rules: a resource does not
	// stand for its subresources. None: no webhook for them.
	Uncovered []v1alpha1.ResourceRule

	// AuthorizedTTL and UnauthorizedTTL are how long a kube-apiserver keeps the answers of
	// /authorize. Zero: 10 seconds.
	AuthorizedTTL, UnauthorizedTTL time.Duration
}

// complete checks the options and fills in defaults.
func (o Options) complete() (Options, error) {
	if o.User == "" {
		o.User = DefaultUser
	}
	if o.ClientCertificateFile == "" && o.ClientKeyFile == "" {
		o.ClientCertificateFile, o.ClientKeyFile = path.Join(o.ConfigDir, "client.crt"), path.Join(o.ConfigDir, "client.key")
	}
	if o.AuthorizedTTL == 0 {
		o.AuthorizedTTL = defaultTTL
	}
	if o.UnauthorizedTTL == 0 {
		o.UnauthorizedTTL = defaultTTL
	}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if u, err := url.Parse(o.ServiceURL); err != nil {
		fault("service URL %q: %w: write it as https://host:port", o.ServiceURL, err)
	} else if rest := strings.TrimSuffix(o.ServiceURL, "/"); u.Scheme != "https" || u.Hostname() == "" || rest != "https://"+u.Host {
		fault("service URL %q: is not of the form https://host:port: kube-apiserver calls webhooks by TLS, and fieldperm's paths are added", o.ServiceURL)
	} else {
		o.ServiceURL = rest
	}
	if err := checkCertificates(o.CABundle); err != nil {
		fault("CA bundle: %w", err)
	}
	for _, file := range []struct{ name, path string }{
		{"configuration directory", o.ConfigDir}, {"client certificate file", o.ClientCertificateFile}, {"client key file", o.ClientKeyFile},
	} {
		if !path.IsAbs(file.path) {
			fault("%s %q: is not absolute: kube-apiserver takes absolute paths only", file.name, file.path)
		}
	}
	if strings.ContainsFunc(o.User, unicode.IsControl) || strings.TrimSpace(o.User) != o.User {
		fault("user %q: has control characters or surrounding space: give the name as the API server knows it", o.User)
	}
	if o.AuthorizedTTL < 0 || o.UnauthorizedTTL < 0 {
		fault("TTL %s or %s: is negative: give a short positive time", o.AuthorizedTTL, o.UnauthorizedTTL)
	}
	for i, rule := range o.Uncovered {
		if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 {
			fault("uncovered rule %d: names no API group or no resource: name both, %q is the core group", i, "")
		}
	}
	return o, errors.Join(errs...)
}

// checkCertificates refuses all but certificates: a key that strays into the bundle would be
// published.
func checkCertificates(bundle []byte) error {
	const cure = "give the PEM certificates that signed fieldperm's serving certificate"
	count := 0
	for rest := bundle; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if len(bytes.TrimSpace(rest)) > 0 {
				return fmt.Errorf("has text that is no PEM block: %s", cure)
			}
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("has a block of type %q: %s, and nothing else", block.Type, cure)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d: %w: %s", count+1, err, cure)
		}
	}
	if count == 0 {
		return fmt.Errorf("has no certificate: %s", cure)
	}
	return nil
}

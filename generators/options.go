package generators

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// DefaultUser is fieldperm's own user if it runs in the cluster.
const DefaultUser = "system:serviceaccount:fieldperm-system:fieldperm"

const (
	// defaultTTL is how long a kube-apiserver caches an answer of /authorize. If admission stops checking writes, a cached Allow grants
	// too much (A5), so its lifetime must be short. A cached NoOpinion delays the effect of a new grant. Kubernetes' defaults are 5
	// minutes and 30 seconds.
	defaultTTL = 10 * time.Second

	// authorizeTimeout is the timeout of one call of /authorize, which itself asks the API server for the marker.
	authorizeTimeout = 3 * time.Second

	// admitTimeoutSeconds is the timeout of one call of /admit, which may ask for up to 32 verbs.
	admitTimeoutSeconds = 10
)

// DefaultReleaseDelay is the default of fieldperm-webhook serve --release-delay.
const DefaultReleaseDelay = 90 * time.Second

// requestTimeout is kube-apiserver's default limit for the duration of a request after its authorization.
const requestTimeout = 60 * time.Second

// proofLife is how long another replica may still allow requests because of a proof from before the deletion: twice the default of
// fieldperm-webhook serve --interlock-interval, and the running call.
const proofLife = 10*time.Second + authorizeTimeout

// LongestTTL returns the limit for the lifetime of a cached Allow: the lifetime must be shorter than the result, so that the release
// delay covers it.
func LongestTTL(releaseDelay time.Duration) time.Duration {
	return releaseDelay - requestTimeout - proofLife
}

// Options describe where fieldperm runs and where its files are. The zero value is not valid.
type Options struct {
	// ServiceURL is the URL at which kube-apiserver reaches fieldperm, such as https://127.0.0.1:9443. If Service is set, only the
	// authorizer uses the URL, because it cannot look up a Service; use the Service's cluster IP, for example.
	ServiceURL string

	// TLSServerName is the name that the authorizer expects in fieldperm's serving certificate. Empty: the host of ServiceURL; but
	// NAME.NAMESPACE.svc if there is a Service and the URL has an IP address.
	TLSServerName string

	// CABundle holds the PEM certificates that verify fieldperm's serving certificate.
	CABundle []byte

	// ConfigDir is the absolute path of the directory for the files on the control plane.
	ConfigDir string

	// ClientCertificateFile and ClientKeyFile are the absolute paths, on the control plane, of kube-apiserver's client certificate for
	// fieldperm and its key. Empty: client.crt and client.key in ConfigDir.
	ClientCertificateFile, ClientKeyFile string

	// User is the name under which fieldperm calls the API server. Empty: DefaultUser.
	User string

	// REST makes the webhook "granular" an object of the cluster instead of a static manifest. The other webhooks are always objects.
	REST bool

	// Service is the Service that the webhooks of REST call. Nil: they call ServiceURL.
	Service *ServiceReference

	// CABundleUsers are the users that may change the CA bundle of the webhooks of REST, besides fieldperm itself and cert-manager.
	CABundleUsers []string

	// Uncovered are the resources with barriers, as webhook rules, for REST. A resource does not include its subresources. Empty:
	// fieldperm maintains the webhook for them itself.
	Uncovered []v1alpha1.ResourceRule

	// AuthorizedTTL and UnauthorizedTTL are how long a kube-apiserver caches the answers of /authorize. Zero: 10 seconds.
	AuthorizedTTL, UnauthorizedTTL time.Duration

	// ReleaseDelay is the value of fieldperm-webhook serve --release-delay. Zero: DefaultReleaseDelay. It limits AuthorizedTTL.
	ReleaseDelay time.Duration
}

// ServiceReference names a Service of the cluster.
type ServiceReference struct {
	Namespace, Name string
	// Port is the port of the Service; zero means 443.
	Port int32
}

// Host returns the DNS name under which the API server calls the Service and looks up its credentials.
func (r *ServiceReference) Host() string { return r.Name + "." + r.Namespace + ".svc" }

func (r *ServiceReference) port() int32 {
	if r.Port == 0 {
		return 443
	}
	return r.Port
}

// checkCertificates returns an error if the bundle has anything but certificates, because a private key in the bundle would be published.
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

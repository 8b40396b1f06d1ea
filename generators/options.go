package generators

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

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

// DefaultReleaseDelay is that of fieldperm-webhook serve --release-delay.
const DefaultReleaseDelay = 90 * time.Second

// requestTimeout is kube-apiserver's default: how long a request may go on after it was authorized.
const requestTimeout = 60 * time.Second

// proofLife is how long another replica may still let through on a proof from before the deletion: two of
// fieldperm-webhook serve --interlock-interval by default, and the call that is under way.
const proofLife = 10*time.Second + authorizeTimeout

// LongestTTL is what an Allow may be kept for, less than that, if a release delay is to cover it.
func LongestTTL(releaseDelay time.Duration) time.Duration {
	return releaseDelay - requestTimeout - proofLife
}

// Options say where fieldperm runs and where its files lie. The zero value is not valid.
type Options struct {
	// ServiceURL is where kube-apiserver reaches fieldperm, such as https://127.0.0.1:9443. With Service
	// it is for the authorizer only, which cannot look up a Service: the Service's cluster IP, say.
	ServiceURL string

	// TLSServerName is what the authorizer checks fieldperm's serving certificate against, if not
	// against the host of ServiceURL. Empty: NAME.NAMESPACE.svc, if there is a Service and the URL
	// has an IP address.
	TLSServerName string

	// CABundle holds the PEM certificates that fieldperm's serving certificate is checked against.
	CABundle []byte

	// ConfigDir is the absolute directory on the control plane where the files will lie.
	ConfigDir string

	// ClientCertificateFile and ClientKeyFile are absolute paths on the control plane of what
	// kube-apiserver shows to fieldperm. Empty: client.crt and client.key in ConfigDir.
	ClientCertificateFile, ClientKeyFile string

	// User is the name under which fieldperm calls the API server. Empty: DefaultUser.
	User string

	// REST makes the webhook "granular" an object of the cluster, instead of a static manifest. The
	// other webhooks are objects always.
	REST bool

	// Service is what the webhooks of REST call. Nil: ServiceURL.
	Service *ServiceReference

	// CABundleUsers may change the CA bundle of the webhooks of REST, beside fieldperm itself and
	// cert-manager.
	CABundleUsers []string

	// Uncovered are the resources with barriers, in the terms of webhook rules, with REST: a resource
	// does not stand for its subresources. None: fieldperm keeps the webhook for them itself.
	Uncovered []v1alpha1.ResourceRule

	// AuthorizedTTL and UnauthorizedTTL are how long a kube-apiserver keeps the answers of
	// /authorize. Zero: 10 seconds.
	AuthorizedTTL, UnauthorizedTTL time.Duration

	// ReleaseDelay is what fieldperm-webhook serve gets as --release-delay. Zero:
	// DefaultReleaseDelay. It bounds AuthorizedTTL.
	ReleaseDelay time.Duration
}

// ServiceReference names a Service of the cluster.
type ServiceReference struct {
	Namespace, Name string
	// Port is 443 if zero.
	Port int32
}

// Host is the name under which the API server calls the Service, and looks up what to show to it.
func (r *ServiceReference) Host() string { return r.Name + "." + r.Namespace + ".svc" }

func (r *ServiceReference) port() int32 {
	if r.Port == 0 {
		return 443
	}
	return r.Port
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

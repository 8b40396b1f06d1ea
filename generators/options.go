package generators

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const (
	// defaultTTL is how long a kube-apiserver caches an answer of /authorize. If admission stops checking writes, a cached Allow grants
	// too much (A5), so its lifetime must be short. A cached NoOpinion delays the effect of a new grant. Kubernetes' defaults are 5
	// minutes and 30 seconds.
	defaultTTL = 10 * time.Second
)

// Options describe where fieldperm runs and where its files are. The zero value is not valid.
type Options struct {
	// Options are the options of the webhooks.
	webhooks.Options

	// TLSServerName is the name that the authorizer expects in fieldperm's serving certificate. Empty: the host of ServiceURL; but
	// NAME.NAMESPACE.svc if there is a Service and the URL has an IP address.
	TLSServerName string

	// ConfigDir is the absolute path of the directory for the files on the control plane.
	ConfigDir string

	// ClientCertificateFile and ClientKeyFile are the absolute paths, on the control plane, of kube-apiserver's client certificate for
	// fieldperm and its key. Empty: client.crt and client.key in ConfigDir.
	ClientCertificateFile, ClientKeyFile string

	// REST makes the webhook "granular" an object of the cluster instead of a static manifest. The other webhooks are always objects.
	REST bool

	// AuthorizedTTL and UnauthorizedTTL are how long a kube-apiserver caches the answers of /authorize. Zero: 10 seconds.
	AuthorizedTTL, UnauthorizedTTL time.Duration

	// ReleaseDelay is the value of fieldperm-webhook serve --release-delay. Zero: DefaultReleaseDelay. It limits AuthorizedTTL.
	ReleaseDelay time.Duration
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

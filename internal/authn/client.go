package authn

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	certutil "k8s.io/client-go/util/cert"
)

const (
	// mostBytes is more than any discovery document or key set has. k8s.io/apiserver would read on.
	mostBytes = 1 << 20
	// keysKept is in the terms of HTTP. go-oidc fetches keys that do not fit a token again 30 s before they
	// expire at the earliest, and so 10 s after it had them.
	keysKept = "max-age=40"
	// clientTimeout is what k8s.io/apiserver gives an issuer for one answer.
	clientTimeout = 30 * time.Second
)

// newClient returns a client for one issuer, which trusts the given CA in PEM, or those of the system if
// it is "". It speaks https alone: OpenID Connect demands that of the keys too, and a redirect or a
// jwks_uri to http would let whoever is on the way make keys.
func newClient(ca string) (*http.Client, *http.Transport, error) {
	configuration := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		roots, err := certutil.NewPoolFromBytes([]byte(ca))
		if err != nil {
			return nil, nil, fmt.Errorf("issuer.certificateAuthority: %w", err)
		}
		configuration.RootCAs = roots
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: configuration})
	return &http.Client{Transport: guarded{transport}, Timeout: clientTimeout}, transport, nil
}

// guarded refuses what is not https, and cuts answers that are too long.
type guarded struct{ base http.RoundTripper }

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("the URL's scheme is %q, must be \"https\"", r.URL.Scheme)
	}
	response, err := g.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &bounded{response.Body, mostBytes}
	if response.Header.Get("Cache-Control") != "" || response.Header.Get("Expires") != "" {
		// However long the issuer says that keys may be kept, a new one must not wait for so long.
		response.Header.Del("Expires")
		response.Header.Set("Cache-Control", keysKept)
	}
	return response, nil
}

// bounded is a body that fails past a number of bytes.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", mostBytes)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

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
	// mostBytes is larger than any discovery document or key set, in bytes. Without a limit, k8s.io/apiserver would read on.
	mostBytes = 1 << 20
	// keysKept is a Cache-Control value. If no key fits a token, go-oidc fetches the keys again, but not earlier than 30 s before
	// they expire. With 40 s, it can fetch them again 10 s after the last time.
	keysKept = "max-age=40"
	// clientTimeout is the time that k8s.io/apiserver allows an issuer for one response.
	clientTimeout = 30 * time.Second
)

// newClient returns a client for one issuer. It trusts the given CA in PEM, or the CAs of the system if ca is "". It accepts only
// https URLs: OpenID Connect requires that for the keys too. With a redirect or a jwks_uri to http, an attacker on the network path
// could replace the keys.
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

// guarded refuses URLs that are not https, and limits the length of responses.
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
		// A new key must become usable soon, even if the issuer allows a long cache time.
		response.Header.Del("Expires")
		response.Header.Set("Cache-Control", keysKept)
	}
	return response, nil
}

// bounded is a body that returns an error after a number of bytes.
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

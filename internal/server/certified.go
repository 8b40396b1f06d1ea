package server

import (
	"crypto/x509"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// certifiedTime bounds how long the verification of a certificate is remembered. No rule needs the bound: it keeps the metrics of
	// k8s.io/apiserver about the certificates of callers current.
	certifiedTime = time.Minute
	// certifiedCallers bounds the certificates that are remembered. Only those that a CA of --client-ca-file has signed are.
	certifiedCallers = 256
)

// certified authenticates callers by k8s.io/apiserver's verification of their client certificate, and remembers its successes: the
// signatures cost more than everything else that a call costs. A kube-apiserver sends all its calls with one certificate.
//
// A remembered result is the result that the verification would have: it holds for the same certificates, for the same CAs, and only while
// each certificate of the chain is valid. Failures are not remembered. TLS proves on each connection that the caller has the key.
type certified struct {
	options requestx509.VerifyOptionFunc
	clock   clock.PassiveClock
	known   *lru.Cache // by the leaf, *x509.Certificate; values are *certificate
}

var _ authenticator.Request = (*certified)(nil)

func newCertified(options requestx509.VerifyOptionFunc, c clock.PassiveClock) *certified {
	return &certified{options: options, clock: c, known: lru.New(certifiedCallers)}
}

// certificate is a verified certificate.
type certificate struct {
	response *authenticator.Response
	// sent are the certificates that the caller sent. crypto/tls never changes a certificate, so the pointers identify them.
	sent []*x509.Certificate
	// roots are the CAs of the verification. A change of --client-ca-file makes new ones.
	roots *x509.CertPool
	// The result is valid in this period, which ends in the limits of each certificate of the chain.
	from, until time.Time
}

func (c *certificate) holds(sent []*x509.Certificate, roots *x509.CertPool, now time.Time) bool {
	return c.roots == roots && slices.Equal(c.sent, sent) && !now.Before(c.from) && !now.After(c.until)
}

// AuthenticateRequest implements authenticator.Request.
func (c *certified) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	options, ok := c.options()
	if !ok {
		return nil, false, nil
	}
	sent, now := r.TLS.PeerCertificates, c.clock.Now()
	if value, found := c.known.Get(sent[0]); found {
		if known := value.(*certificate); known.holds(sent, options.Roots, now) {
			return known.response, true, nil
		}
	}
	options.CurrentTime = now
	response, ok, err := requestx509.New(options, requestx509.UserConversionFunc(chained)).AuthenticateRequest(r)
	if err != nil || !ok {
		return response, ok, err
	}
	verified, ok := response.User.(*chainUser)
	if !ok {
		return response, true, nil
	}
	response = &authenticator.Response{Audiences: response.Audiences, User: verified.Info}
	from, until := validity(verified.chain)
	// The bound below also counts for a clock that is set back.
	remembered := &certificate{response: response, sent: slices.Clone(sent), roots: options.Roots, from: later(from, now), until: earlier(until, now.Add(certifiedTime))}
	c.known.Add(sent[0], remembered)
	return response, true, nil
}

// chainUser is the user of a verified certificate, with the chain that was verified.
type chainUser struct {
	user.Info
	chain []*x509.Certificate
}

// chained is k8s.io/apiserver's conversion. It adds the chain, which the authenticator does not return.
func chained(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
	response, ok, err := requestx509.CommonNameUserConversion(chain)
	if err != nil || !ok {
		return response, ok, err
	}
	response.User = &chainUser{response.User, chain}
	return response, true, nil
}

// validity returns the period in which each certificate of a chain is valid.
func validity(chain []*x509.Certificate) (from, until time.Time) {
	from, until = chain[0].NotBefore, chain[0].NotAfter
	for _, c := range chain[1:] {
		from, until = later(from, c.NotBefore), earlier(until, c.NotAfter)
	}
	return from, until
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

package server

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	testclock "k8s.io/utils/clock/testing"
)

// periods are how long each certificate of a chain is valid, before and after begin.
type periods struct{ root, intermediate, leaf [2]time.Duration }

var long = [2]time.Duration{-time.Hour, time.Hour}

// caller is a client certificate with an intermediate, and a certified that trusts its root.
type caller struct {
	*certified
	clock *testclock.FakePassiveClock
	begin time.Time
	roots *x509.CertPool
	sent  []*x509.Certificate
}

func newCaller(t *testing.T, p periods) *caller {
	t.Helper()
	begin := time.Now().Truncate(time.Second)
	issue := func(name string, valid [2]time.Duration, of *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key := newKey(t)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
			NotBefore: begin.Add(valid[0]), NotAfter: begin.Add(valid[1]), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if name != "kube-apiserver" {
			template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
		}
		if of == nil {
			of, by = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, of, key.Public(), by)
		if err != nil {
			t.Fatal(err)
		}
		out, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return out, key
	}
	root, rootKey := issue("root", p.root, nil, nil)
	intermediate, intermediateKey := issue("intermediate", p.intermediate, root, rootKey)
	leaf, _ := issue("kube-apiserver", p.leaf, intermediate, intermediateKey)
	c := &caller{clock: testclock.NewFakePassiveClock(begin), begin: begin, sent: []*x509.Certificate{leaf, intermediate}}
	c.trust(root)
	c.certified = newCertified(func() (x509.VerifyOptions, bool) {
		return x509.VerifyOptions{Roots: c.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, c.roots != nil
	}, c.clock)
	return c
}

// trust replaces the CAs, as a change of --client-ca-file does.
func (c *caller) trust(roots ...*x509.Certificate) {
	c.roots = x509.NewCertPool()
	for _, root := range roots {
		c.roots.AddCert(root)
	}
}

func (c *caller) call(sent ...*x509.Certificate) (*authenticator.Response, bool, error) {
	r := httptest.NewRequest(http.MethodPost, "/admit/granular", http.NoBody)
	r.TLS = &tls.ConnectionState{PeerCertificates: sent}
	return c.AuthenticateRequest(r)
}

// accepted requires that the caller is authenticated, and returns the response.
func (c *caller) accepted(t *testing.T) *authenticator.Response {
	t.Helper()
	response, ok, err := c.call(c.sent...)
	if err != nil || !ok || response.User.GetName() != "kube-apiserver" {
		t.Fatalf("got %v, %t, %v", response, ok, err)
	}
	return response
}

func (c *caller) refused(t *testing.T, sent ...*x509.Certificate) {
	t.Helper()
	if response, ok, err := c.call(sent...); ok {
		t.Errorf("accepted as %v, %v", response.User, err)
	}
}

func TestCertified_AVerificationIsRememberedForAMinute(t *testing.T) {
	c := newCaller(t, periods{long, long, long})
	first := c.accepted(t)
	c.clock.SetTime(c.begin.Add(certifiedTime))
	if c.accepted(t) != first {
		t.Error("verified again within the minute")
	}
	c.clock.SetTime(c.begin.Add(certifiedTime + time.Second))
	if c.accepted(t) == first {
		t.Error("not verified again after the minute")
	}
}

func TestCertified_NoCertificateOfTheChainCountsOutsideItsPeriod(t *testing.T) {
	short := [2]time.Duration{-10 * time.Second, 10 * time.Second}
	for name, p := range map[string]periods{"root": {short, long, long}, "intermediate": {long, short, long}, "leaf": {long, long, short}} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t, p)
			for _, at := range []time.Duration{11 * time.Second, -11 * time.Second} {
				c.clock.SetTime(c.begin)
				c.accepted(t)
				c.clock.SetTime(c.begin.Add(at))
				c.refused(t, c.sent...)
			}
		})
	}
}

func TestCertified_AChangeOfTheCAsCountsAtOnce(t *testing.T) {
	c := newCaller(t, periods{long, long, long})
	trusted := c.roots
	c.accepted(t)
	c.trust(newAuthority(t, "another").certificate)
	c.refused(t, c.sent...)
	c.roots = nil
	c.refused(t, c.sent...)
	// A failure is not remembered.
	c.roots = trusted
	c.accepted(t)
}

func TestCertified_AnotherChainOfTheSameLeafIsVerified(t *testing.T) {
	c := newCaller(t, periods{long, long, long})
	c.accepted(t)
	c.refused(t, c.sent[0])
	c.refused(t, c.sent[0], newAuthority(t, "another").certificate)
	c.accepted(t)
	c.refused(t)
}

func TestCertified_ACertificateThatIsNotSignedIsNeverAccepted(t *testing.T) {
	c, stranger := newCaller(t, periods{long, long, long}), newCaller(t, periods{long, long, long})
	for range 2 {
		c.accepted(t)
		c.refused(t, stranger.sent...)
		c.refused(t, stranger.sent[0], c.sent[1])
	}
}

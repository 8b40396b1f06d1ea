package authz

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// remote is a webhook in this process, over TLS. It responds by answer, which a test may change.
type remote struct {
	// rotated takes the place of the configuration of the server, unless it is nil.
	rotated atomic.Pointer[tls.Config]
	*fakeapi.Server
	mu      sync.Mutex
	asked   []authorizationv1.SubjectAccessReview
	headers []http.Header
	paths   []string
	answer  answer
}

// answer responds to a review that a webhook received.
type answer func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview)

func newRemote(t testing.TB, a answer) *remote {
	t.Helper()
	r := &remote{answer: a}
	r.Server = fakeapi.ServeTLS(t, r, &tls.Config{Certificates: []tls.Certificate{certificate(t)}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.rotated.Load(), nil }})
	return r
}

// certificate returns a self-signed certificate that is its own CA.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (r *remote) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	if review.Spec.User != healthCheckUser {
		r.asked = append(r.asked, review)
		r.headers = append(r.headers, request.Header)
		r.paths = append(r.paths, request.URL.Path)
	}
	a := r.answer
	r.mu.Unlock()
	a(w, request, &review)
}

func (r *remote) become(a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = a
}

// questions returns the number of questions, without health checks.
func (r *remote) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

func (r *remote) last() authorizationv1.SubjectAccessReview {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[len(r.asked)-1]
}

// status responds with a review that has this status.
func status(s authorizationv1.SubjectAccessReviewStatus) answer {
	return func(w http.ResponseWriter, _ *http.Request, review *authorizationv1.SubjectAccessReview) {
		out := *review
		out.Status = s
		fakeapi.JSON(w, http.StatusOK, out)
	}
}

func allow(reason string) answer {
	return status(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: reason})
}

func deny(reason string) answer {
	return status(authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: reason})
}

func pass() answer { return status(authorizationv1.SubjectAccessReviewStatus{}) }

func both() answer {
	return status(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true})
}

func code(n int) answer {
	return func(w http.ResponseWriter, _ *http.Request, _ *authorizationv1.SubjectAccessReview) {
		fakeapi.Status(w, n, "")
	}
}

func body(text string) answer {
	return func(w http.ResponseWriter, r *http.Request, _ *authorizationv1.SubjectAccessReview) {
		fakeapi.Text(text)(w, r)
	}
}

// hang does not respond until the client disconnects.
func hang() answer {
	return func(_ http.ResponseWriter, r *http.Request, _ *authorizationv1.SubjectAccessReview) {
		<-r.Context().Done()
	}
}

func drop() answer {
	return func(http.ResponseWriter, *http.Request, *authorizationv1.SubjectAccessReview) {
		panic(http.ErrAbortHandler)
	}
}

// gate holds responses back until it is opened, and signals that one waits.
type gate struct{ waits, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 2000), make(chan struct{})} }

func (g gate) then(a answer) answer {
	return func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
		if review.Spec.User != healthCheckUser {
			g.waits <- struct{}{}
			select {
			case <-g.open:
			case <-r.Context().Done():
			}
		}
		a(w, r, review)
	}
}

package authn

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// states is an Observer that keeps the last state of each issuer: good, bad or gone.
type states struct {
	mu   sync.Mutex
	seen map[string]string
}

func (s *states) Provider(issuer, identity string, good bool) {
	s.set(issuer+" "+identity, map[bool]string{true: "good", false: "bad"}[good])
}

func (s *states) ProviderGone(issuer, identity string) { s.set(issuer+" "+identity, "gone") }

func (s *states) set(key, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]string{}
	}
	s.seen[key] = state
}

func (s *states) of(i *issuer.Issuer, identity string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[i.URL()+" "+identity]
}

// The status of an issuer is that of its discovery document, as the authenticator reads it.
func TestKEP3331_TheStatusOfAProviderIsReported(t *testing.T) {
	good := startIssuer(t, issuer.Config{Path: "/realms/dev"})
	elsewhere := startIssuer(t, issuer.Config{Name: "https://issuer.example.com", DiscoveryPath: "/internal/configuration"})
	failing, silent := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	failing.Behave(issuer.Behaviour{Status: http.StatusServiceUnavailable})
	if err := silent.Stop(); err != nil {
		t.Fatal(err)
	}
	s := settings(t, configuration(entry(good, named), issuerOnly(elsewhere, "["+audience+"]", "\n    discoveryURL: "+elsewhere.DiscoveryURL())+named+"\n", entry(failing, named), entry(silent, named)))
	seen := &states{}
	s.Observer, s.startWait = seen, time.Second
	a, _ := start(t, s)
	for i, want := range map[*issuer.Issuer]string{good: "good", elsewhere: "good", failing: "bad", silent: "bad"} {
		eventually(t, i.URL()+" is "+want, func() bool { return seen.of(i, s.Identity) == want })
	}
	if err := apply(t, a, entry(good, named)); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[*issuer.Issuer]string{good: "good", elsewhere: "gone", failing: "gone", silent: "gone"} {
		eventually(t, i.URL()+" is "+want, func() bool { return seen.of(i, s.Identity) == want })
	}
	accepted(t, a, sign(t, good, claims(), issuer.Token{}), "ann")
}

// A document that is not one with the issuer's name is no good status, whatever its code.
func TestKEP3331_ADiscoveryDocumentHasTheNameAndTheKeys(t *testing.T) {
	for text, want := range map[string]bool{
		`{"issuer": "https://a.example", "jwks_uri": "https://a.example/keys"}`: true,
		`{"issuer": "https://b.example", "jwks_uri": "https://a.example/keys"}`: false,
		`{"issuer": "https://a.example"}`:                                       false,
		`not JSON`:                                                              false,
	} {
		for _, code := range []int{http.StatusOK, http.StatusNotFound} {
			var got []bool
			transport := &watched{answering{code, text}, "https://a.example/.well-known/openid-configuration", "https://a.example", func(good bool) { got = append(got, good) }}
			for _, address := range []string{"https://a.example/keys", "https://a.example/.well-known/openid-configuration"} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				body := make([]byte, len(text)+1)
				n, _ := response.Body.Read(body)
				if string(body[:n]) != text || response.StatusCode != code {
					t.Errorf("the library gets %d %q", response.StatusCode, body[:n])
				}
				if err := response.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if len(got) != 1 || got[0] != (want && code == http.StatusOK) {
				t.Errorf("%d %s: reports are %v", code, text, got)
			}
		}
	}
}

// answering answers each request with one document.
type answering struct {
	code int
	body string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader(a.body)), Header: http.Header{}}, nil
}

// An operator can tell from the log that the file is in force, and with which issuers (KEP-3331, Monitoring Requirements).
func TestKEP3331_TheStartIsLogged(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	s := settings(t, configuration(entry(i, "\n  claimMappings: {username: {claim: sub, prefix: 'oidc:'}}")))
	a, err := New(klog.NewContext(t.Context(), logger), s)
	if err != nil {
		t.Fatal(err)
	}
	a.swap(nil)
	a.end()
	sink, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the log cannot be read")
	}
	text := sink.GetBuffer().String()
	for _, want := range []string{"Authentication configuration: is in force", s.File, i.URL(), "username from claim"} {
		if !strings.Contains(text, want) {
			t.Errorf("log has no %q:\n%s", want, text)
		}
	}
}

package authn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/internal/configfile"
	"github.com/fieldperm/fieldperm/test/issuer"
)

// problems fails the test unless the error is Problems of the file, each with the wanted substrings.
func problems(t *testing.T, err error, want ...[]string) {
	t.Helper()
	var all configfile.Problems
	if !errors.As(err, &all) {
		t.Fatalf("error is %v, want the file's problems", err)
	}
	if len(all) != len(want) {
		t.Fatalf("there are %d problems, want %d: %v", len(all), len(want), err)
	}
	for n := range all {
		for _, part := range want[n] {
			if !strings.Contains(all[n].Error(), part) {
				t.Errorf("problem is %q, want %q in it", all[n], part)
			}
		}
		if all[n].Cure == "" || all[n].Key == "" {
			t.Errorf("problem %q has no cure or no key", all[n])
		}
	}
}

func TestP8_StartFailsOnAFileWithFaults(t *testing.T) {
	s := settings(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer:\n    url: http://a\n    audiences: []\n  claimMappings: {username: {claim: sub, prefix: ''}}\n")
	_, err := New(t.Context(), s)
	problems(t, err, []string{s.File + ":5", "jwt[0].issuer.url"}, []string{s.File + ":6", "jwt[0].issuer.audiences"})
	s.File += ".gone"
	if _, err = New(t.Context(), s); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), s.File) {
		t.Errorf("error is %v, want that %q does not exist", err, s.File)
	}
}

func TestP8_StartFailsOnAnIssuerWithAnotherURL(t *testing.T) {
	honest, liar := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	liar.Behave(issuer.Behaviour{Name: liar.URL() + "/"})
	s := settings(t, configuration(entry(honest, named), entry(liar, named)))
	_, err := New(t.Context(), s)
	text := configuration(entry(honest, named))
	at := strings.Count(text, "\n") + 2
	problems(t, err, []string{
		fmt.Sprintf("%s:%d: jwt[1].issuer.url: ", s.File, at),
		fmt.Sprintf("issuer %q answers at %q with the name %q", liar.URL(), liar.DiscoveryURL(), liar.URL()+"/"),
		"write url: " + liar.URL() + "/ if",
	})
	awaitNoGoroutines(t)
}

// The file may be the one that kube-apiserver reads, with egress selectors.
func TestKEP3331_AnEgressSelectorHasNoEffect(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, issuerOnly(i, "["+audience+"]", "\n    egressSelectorType: cluster")+named+"\n")
	accepted(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
}

// An issuer may depend on fieldperm, and then cannot start first.
func TestP8_StartGoesOnWithoutAnIssuer(t *testing.T) {
	up, down, slow := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	if err := down.Stop(); err != nil {
		t.Fatal(err)
	}
	wait := make(chan struct{})
	slow.Behave(issuer.Behaviour{Wait: wait, Only: issuer.Discovery})
	s := settings(t, configuration(entry(up, named), entry(down, named), entry(slow, named)))
	s.startWait = time.Second
	a, _ := start(t, s)
	accepted(t, a, sign(t, up, claims(), issuer.Token{}), "ann")
	refusedWith(t, a, sign(t, down, claims(), issuer.Token{}), "has not answered yet")
	token := sign(t, slow, claims(), issuer.Token{})
	refusedWith(t, a, token, "has not answered yet")
	close(wait)
	eventually(t, "the issuer's tokens are accepted once it answers", func() bool {
		_, err := identify(a, token)
		return err == nil
	})
	if err := a.Fault(); err != nil {
		t.Errorf("fault is %v, want none", err)
	}
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		behaviour issuer.Behaviour
		want      string
		lies      bool
	}{
		"well":                 {},
		"another name":         {issuer.Behaviour{Name: "https://else.example.com"}, `with the name "https://else.example.com"`, true},
		"a name without end":   {issuer.Behaviour{Name: strings.Repeat("x", 5000)}, "x…\"", true},
		"an error":             {issuer.Behaviour{Status: http.StatusBadGateway}, `answers "502 Bad Gateway"`, false},
		"no JSON":              {issuer.Behaviour{Body: "<html>"}, "does not answer with the JSON of one", false},
		"no end":               {issuer.Behaviour{Body: strings.Repeat(" ", mostBytes+1)}, "longer than 1048576 bytes", false},
		"no jwks_uri":          {issuer.Behaviour{NoKeys: true}, "has no jwks_uri", false},
		"no keys":              {issuer.Behaviour{Only: issuer.Keys, Body: `{"keys":[]}`}, "has none", false},
		"keys with an error":   {issuer.Behaviour{Only: issuer.Keys, Status: http.StatusNotFound}, `answers "404 Not Found"`, false},
		"keys that are no set": {issuer.Behaviour{Only: issuer.Keys, Body: `[]`}, "does not answer with the JSON of one", false},
	} {
		t.Run(name, func(t *testing.T) {
			i := startIssuer(t, issuer.Config{})
			i.Behave(c.behaviour)
			errs := probeText(t, configuration(entry(i, named)))
			if c.want == "" {
				if len(errs) != 0 {
					t.Fatalf("errors are %v, want none", errs)
				}
				return
			}
			var fault *IssuerError
			if len(errs) != 1 || !errors.As(errs[0], &fault) {
				t.Fatalf("errors are %v, want one of an issuer", errs)
			}
			if !strings.Contains(fault.Error(), c.want) || !strings.HasPrefix(fault.Error(), "jwt[0].issuer.url: issuer ") || fault.Lies != c.lies || fault.Cure == "" || len(fault.Error()) > 900 {
				t.Errorf("error is %v, lies %t, want %q, %t", fault, fault.Lies, c.want, c.lies)
			}
		})
	}
}

func TestProbeOfHowAnIssuerIsReached(t *testing.T) {
	i, other, down := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	if err := down.Stop(); err != nil {
		t.Fatal(err)
	}
	untrusted := strings.Replace(entry(other, named), other.URL(), i.URL(), 1)
	errs := probeText(t, configuration(untrusted, entry(other, named), entry(down, named)))
	if len(errs) != 2 || !strings.HasPrefix(errs[0].Error(), "jwt[0]") || !strings.Contains(errs[0].Error(), "x509") ||
		!strings.HasPrefix(errs[1].Error(), "jwt[2]") || !strings.Contains(errs[1].Error(), "refused") {
		t.Errorf("errors are %v, want that the first is not trusted and the third not there", errs)
	}
	// An attacker could replace keys that are fetched by http.
	i.Behave(issuer.Behaviour{Only: issuer.Discovery, Body: fmt.Sprintf(`{"issuer":%q,"jwks_uri":"http://%s/keys"}`, i.URL(), i.Address())})
	errs = probeText(t, configuration(entry(i, named)))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), `the URL's scheme is "http", must be "https"`) {
		t.Errorf("errors are %v, want that http is refused", errs)
	}
	// A probe ends with its context.
	i.Behave(issuer.Behaviour{Wait: make(chan struct{})})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	loaded, _, err := configfile.LoadAuthentication("f", []byte(configuration(entry(i, named))))
	if err != nil {
		t.Fatal(err)
	}
	if errs := Probe(ctx, loaded); len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("errors are %v, want that the context has ended", errs)
	}
}

func probeText(t *testing.T, text string) []error {
	t.Helper()
	loaded, _, err := configfile.LoadAuthentication("authentication.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Probe(t.Context(), loaded)
}

// A server that drains still authenticates requests in progress. The context of New has ended by then.
func TestP8_AnswersAfterTheContextOfTheStart(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	a, err := New(ctx, settings(t, configuration(entry(i, named))))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	accepted(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
	a.Run(ctx)
	awaitNoGoroutines(t)
}

// Neither goroutines that ask issuers nor connections to issuers may remain.
func TestNoGoroutineOutlivesRun(t *testing.T) {
	up, down := startIssuer(t, issuer.Config{}), startIssuer(t, issuer.Config{})
	if err := down.Stop(); err != nil {
		t.Fatal(err)
	}
	a, stop := start(t, settings(t, configuration(entry(up, named), entry(down, named))))
	token := sign(t, up, claims(), issuer.Token{})
	accepted(t, a, token, "ann")
	if goroutines(t) == "" {
		t.Fatal("nothing runs, so that nothing can be seen to end")
	}
	stop()
	awaitNoGoroutines(t)
	refusedWith(t, a, token, "authentication has ended")
}

func awaitNoGoroutines(t *testing.T) {
	t.Helper()
	eventually(t, "all goroutines have ended", func() bool { return goroutines(t) == "" })
}

// goroutines returns the goroutines of this package, of the library, and of connections to issuers.
func goroutines(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 2); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, one := range strings.Split(text.String(), "\n\n") {
		if !strings.Contains(one, "testing.tRunner") && (strings.Contains(one, "authenticator/token/oidc.") || strings.Contains(one, "internal/authn.") || strings.Contains(one, "persistConn)") || strings.Contains(one, "http2ClientConn)") || strings.Contains(one, "ClientConn).readLoop")) {
			out = append(out, one)
		}
	}
	return strings.Join(out, "\n\n")
}

package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// withIssuer makes fieldperm accept tokens of an issuer. Its users are named issuer:NAME.
func withIssuer(t *testing.T, r *running) *issuer.Issuer {
	t.Helper()
	i, err := issuer.Start(issuer.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	r.options.AuthenticationConfig = write(t, r.dir, "authentication.yaml", fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [fieldperm]
    certificateAuthority: |
      %s
  claimMappings:
    username: {claim: sub, prefix: "issuer:"}
    groups: {claim: groups, prefix: "issuer:"}
`, i.URL(), strings.ReplaceAll(strings.TrimSpace(string(i.CA())), "\n", "\n      ")))
	return i
}

func token(t *testing.T, i *issuer.Issuer, name string) string {
	t.Helper()
	signed, err := i.Sign(map[string]any{"iss": i.URL(), "sub": name, "aud": "fieldperm", "exp": time.Now().Add(time.Hour).Unix()}, issuer.Token{})
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// call sends a body with a bearer token and without a client certificate.
func (r *running) call(t *testing.T, method, path, body string, header http.Header) (int, string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.serving.pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// question is a question of the caller about itself.
var question = strings.Replace(scaling, `"userInfo":{"username":"alice"},`, "", 1)

func TestKEP3331_CallersOfEachEndpoint(t *testing.T) {
	var i *issuer.Issuer
	r := start(t, func(r *running) {
		i = withIssuer(t, r)
		r.options.WebhookTokenUsers = []string{"issuer:kube-apiserver"}
		r.api.holds = []string{"granular", "granular:scale"}
	})
	certificate := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, certificate, "/readyz"); return code == http.StatusOK })
	alice, server := bearer(token(t, i, "alice")), bearer(token(t, i, "kube-apiserver"))
	eventually(t, "keys of the issuer", func() bool {
		code, _ := r.call(t, http.MethodGet, "/permissions", "", alice)
		return code == http.StatusOK
	})
	for path, body := range map[string]string{"/admit/granular": scaling, "/admit/uncovered": scaling, "/admit/schemas": scaling, "/authorize": updating, "/metrics": "", "/review": question, "/permissions": ""} {
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		people, webhook := path == "/review" || path == "/permissions", strings.HasPrefix(path, "/a")
		for name, caller := range map[string]struct {
			header http.Header
			passes bool
		}{
			"nobody":                  {nil, false},
			"a person":                {alice, people},
			"the API server":          {server, people || webhook},
			"a token of another":      {bearer("eyJhbGciOiJub25lIn0.e30."), false},
			"a name without its mark": {http.Header{"Authorization": {"Bearer"}}, false},
			"a front proxy's header":  {http.Header{"X-Remote-User": {"issuer:kube-apiserver"}, "Impersonate-User": {"issuer:kube-apiserver"}}, false},
		} {
			code, text := r.call(t, method, path, body, caller.header)
			if passed := code != http.StatusUnauthorized; passed != caller.passes {
				t.Errorf("%s by %s: %d %s", path, name, code, text)
			}
		}
		response, err := func() (*http.Response, error) {
			if method == http.MethodGet {
				return certificate.Get(r.url(path))
			}
			return certificate.Post(r.url(path), "application/json", strings.NewReader(body))
		}()
		if err != nil {
			t.Fatal(err)
		}
		if code, text := read(t, response); code == http.StatusUnauthorized {
			t.Errorf("%s by certificate: %s", path, text)
		}
	}
}

// Each authentication is counted with its result, on every path.
func TestKEP3331_AuthenticationIsMeasured(t *testing.T) {
	var i *issuer.Issuer
	r := start(t, func(r *running) {
		i = withIssuer(t, r)
		// The API server that a probe passes through calls fieldperm too, and would be counted.
		r.options.ProofInterval, r.options.ReleaseDelay = time.Hour, 2*time.Hour
	})
	certificate := client509(t, r.serving, r.serving)
	alice := bearer(token(t, i, "alice"))
	eventually(t, "keys of the issuer", func() bool {
		code, _ := r.call(t, http.MethodGet, "/permissions", "", alice)
		return code == http.StatusOK
	})
	counted := func() map[string]string {
		_, text := r.get(t, certificate, "/metrics")
		out := map[string]string{}
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, `fieldperm_authentication_duration_seconds_count{result="`); ok {
				result, n, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
				out[result] = n
			}
			if strings.HasPrefix(line, "apiserver_authentication_jwt_authenticator_provider_status_timestamp_seconds{") && strings.Contains(line, `result="success"`) {
				out["provider"] = "there"
			}
		}
		return out
	}
	before := counted()
	r.call(t, http.MethodGet, "/permissions", "", nil)
	r.call(t, http.MethodPost, "/admit/granular", scaling, nil)
	r.call(t, http.MethodGet, "/permissions", "", bearer("eyJhbGciOiJub25lIn0.e30."))
	r.call(t, http.MethodGet, "/permissions", "", alice)
	after := counted()
	for result, want := range map[string]int{"failure": 2, "error": 1, "success": 2} { // The scrape before counts too.
		was, _ := strconv.Atoi(before[result])
		if got, err := strconv.Atoi(after[result]); err != nil || got-was != want {
			t.Errorf("%s: %d more, %v, want %d", result, got-was, err, want)
		}
	}
	if after["provider"] == "" {
		t.Error("the status of the issuer is not there")
	}
}

func TestKEP3331_OnlyNamedTokensReachWebhooks(t *testing.T) {
	var i *issuer.Issuer
	r := start(t, func(r *running) { i = withIssuer(t, r) })
	server := bearer(token(t, i, "kube-apiserver"))
	eventually(t, "keys of the issuer", func() bool {
		code, _ := r.call(t, http.MethodGet, "/permissions", "", server)
		return code != http.StatusUnauthorized
	})
	for _, path := range []string{"/admit/granular", "/admit/uncovered", "/admit/schemas", "/authorize", "/metrics"} {
		if code, text := r.call(t, http.MethodPost, path, scaling, server); code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// Whatever the fault of a token, the response is the same.
func TestKEP3331_RefusalsOfBadTokensHaveNoReason(t *testing.T) {
	var i *issuer.Issuer
	r := start(t, func(r *running) { i = withIssuer(t, r) })
	good := token(t, i, "alice")
	eventually(t, "keys of the issuer", func() bool {
		code, _ := r.call(t, http.MethodGet, "/permissions", "", bearer(good))
		return code != http.StatusUnauthorized
	})
	claims := func(change func(map[string]any)) string {
		c := map[string]any{"iss": i.URL(), "sub": "alice", "aud": "fieldperm", "exp": time.Now().Add(time.Hour).Unix()}
		change(c)
		signed, err := i.Sign(c, issuer.Token{})
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	answers := map[string]bool{}
	for _, bad := range []string{
		"nonsense", good[:len(good)-4] + "AAAA",
		claims(func(c map[string]any) { c["exp"] = 1 }),
		claims(func(c map[string]any) { c["aud"] = "another" }),
		claims(func(c map[string]any) { c["iss"] = "https://elsewhere.example.com" }),
		claims(func(c map[string]any) { delete(c, "sub") }),
	} {
		code, text := r.call(t, http.MethodPost, "/review", question, bearer(bad))
		answers[fmt.Sprint(code, text)] = true
		if code != http.StatusUnauthorized {
			t.Errorf("%d %s", code, text)
		}
	}
	if len(answers) != 1 {
		t.Errorf("answers tell bad tokens apart: %v", answers)
	}
}

func TestReview_OtherSubjectsNeedCreateOnSubjectAccessReviews(t *testing.T) {
	var i *issuer.Issuer
	r := start(t, func(r *running) {
		i = withIssuer(t, r)
		r.options.DecisionCacheTTL = 0
		r.api.holds = []string{"granular", "granular:scale"}
	})
	alice := bearer(token(t, i, "alice"))
	certificate := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, certificate, "/readyz"); return code == http.StatusOK })
	eventually(t, "an answer about oneself", func() bool {
		code, text := r.call(t, http.MethodPost, "/review", question, alice)
		return code == http.StatusOK && strings.Contains(text, `"allowed": true`)
	})
	if code, text := r.call(t, http.MethodPost, "/review", scaling, alice); code != http.StatusForbidden || !strings.Contains(text, "subjectaccessreviews") {
		t.Errorf("about another: %d %s", code, text)
	}
	// The caller's own name with more groups is another user.
	more := strings.Replace(scaling, `"username":"alice"`, `"username":"issuer:alice","groups":["system:masters"]`, 1)
	if code, text := r.call(t, http.MethodPost, "/review", more, alice); code != http.StatusForbidden {
		t.Errorf("with more groups: %d %s", code, text)
	}
	r.api.set(func() { r.api.holds = append(r.api.holds, "create") })
	eventually(t, "the grant counts", func() bool {
		code, _ := r.call(t, http.MethodPost, "/review", scaling, alice)
		return code == http.StatusOK
	})
}

// Users of the review API must not keep API servers from calling the webhooks.
func TestReview_HasALimitOfItsOwn(t *testing.T) {
	r := start(t, func(r *running) { r.options.MaxRequestsInFlight = reviewShare })
	certificate := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, certificate, "/readyz"); return code == http.StatusOK })
	release := make(chan struct{})
	r.api.set(func() { r.api.holds, r.api.hold = []string{"update"}, release })
	first := make(chan int, 1)
	go func() { code, _ := r.post(t, certificate, "/review", question); first <- code }()
	<-r.api.asked
	if code, _ := r.post(t, certificate, "/review", question); code != http.StatusServiceUnavailable {
		t.Errorf("a second question at the same time: %d", code)
	}
	r.api.set(func() { r.api.hold = nil })
	if code, text := r.post(t, certificate, "/admit/granular", scaling); code != http.StatusOK || !strings.Contains(text, `"allowed":true`) {
		t.Errorf("/admit beside it: %d %s", code, text)
	}
	close(release)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
}

// A caller with a client certificate that is not accepted is not anonymous.
func TestKEP3331_AForeignCertificateIsNotAnonymous(t *testing.T) {
	r := start(t, func(r *running) {
		withIssuer(t, r)
		data, err := os.ReadFile(r.options.AuthenticationConfig)
		if err != nil {
			t.Fatal(err)
		}
		write(t, r.dir, "authentication.yaml", append(data, "anonymous: {enabled: true}\n"...))
	})
	certificate := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, certificate, "/readyz"); return code == http.StatusOK })
	if code, text := r.call(t, http.MethodPost, "/review", question, nil); code != http.StatusOK {
		t.Errorf("nothing shown: %d %s", code, text)
	}
	if code, text := r.call(t, http.MethodPost, "/review", question, bearer("x.y.z")); code != http.StatusUnauthorized {
		t.Errorf("a bad token: %d %s", code, text)
	}
	pair, err := tls.X509KeyPair(newAuthority(t, "another").issue(t, "kube-apiserver"))
	if err != nil {
		t.Fatal(err)
	}
	foreign := client509(t, r.serving, nil)
	transport, ok := foreign.Transport.(*http.Transport)
	if !ok {
		t.Fatal("the client's transport cannot be changed")
	}
	transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	if code, text := r.post(t, foreign, "/review", question); code != http.StatusUnauthorized {
		t.Errorf("a certificate of another CA: %d %s", code, text)
	}
	// Such a caller has no access to the webhooks either.
	for _, path := range []string{"/admit/granular", "/authorize", "/metrics"} {
		if code, text := r.call(t, http.MethodPost, path, scaling, nil); code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

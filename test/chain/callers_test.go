//go:build integration

package chain

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// question asks whether a change of the Deployment's replicas, or of its image, would be allowed. user is a JSON object, "" for the caller.
func question(old, changed, user string) string {
	if user != "" {
		user = `"userInfo":` + user + `,`
	}
	object := func(fields string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"` + plain + `"},"spec":` + fields + `}`
	}
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"operation":"UPDATE",%s
		"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},
		"name":"web","namespace":%q,"oldObject":%s,"object":%s}}`, user, plain, object(old), object(changed))
}

// tell sends a body to fieldperm with a bearer token, which is the only identification of the caller; "" for no token.
func (s *scene) tell(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	roots, err := cert.NewPool(s.File("ca.crt"))
	must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, s.WebhookURL()+path, bytes.NewBufferString(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(request)
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(answer)
}

func (s *scene) mustToken(t *testing.T, p person) string {
	t.Helper()
	token, err := s.token(p)
	must(t, err)
	return token
}

const (
	one       = `{"replicas":1}`
	two       = `{"replicas":2}`
	paused    = `{"replicas":1,"paused":true}`
	scalerBob = `{"username":"jwt:bob","groups":["jwt:scalers","system:authenticated"]}`
)

// TestKEP3331_Review: users with a token can ask for their own permissions. They can ask for the permissions of other users only if they
// may create SubjectAccessReviews.
func TestKEP3331_Review(t *testing.T) {
	s := on(t, broken)
	mina := s.mustToken(t, person{name: "mina", groups: []string{scalers}, team: "payments"})
	for _, c := range []struct {
		name, question string
		allowed        bool
		// says is the mode, or a part of the message.
		says string
	}{
		{"a field that she holds a verb for", question(one, two, ""), true, "granular"},
		{"one that she does not", question(one, paused, ""), false, `User "jwt:mina" may not change .spec.paused`},
		{
			"named as the token names her",
			question(one, two, `{"username":"jwt:mina","uid":"uid-of-mina","groups":["jwt:scalers","system:authenticated"],"extra":{"example.com/team":["payments"]}}`),
			true, "granular",
		},
	} {
		report, err := s.review(t, mina, c.question)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if report.Allowed != c.allowed || len(report.Changes) != 1 || len(report.Checks) == 0 || !strings.Contains(report.Mode+" "+report.Message, c.says) {
			t.Errorf("%s: %+v, want allowed %v, %q, one change and checks", c.name, report, c.allowed, c.says)
		}
	}

	// Another name, and the name of the caller with other groups, are another user than the caller.
	for _, other := range []string{scalerBob, `{"username":"jwt:mina","groups":["jwt:scalers","system:masters"]}`} {
		if code, body := s.tell(t, http.MethodPost, "/review", mina, question(one, two, other)); code != http.StatusForbidden {
			t.Errorf("about %s: %d, want 403: %s", other, code, body)
		}
	}
	must(t, s.grant(t.Context(), "reviewers", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jwt:mina"},
		rule("authorization.k8s.io", "subjectaccessreviews", "create")))
	defer func() { must(t, s.revoke(context.WithoutCancel(t.Context()), "reviewers")) }()
	eventually(t, func() error {
		report, err := s.review(t, mina, question(one, two, scalerBob))
		if err == nil && !report.Allowed {
			t.Errorf("about a user with the verbs: %+v", report)
		}
		return err
	})
	report, err := s.review(t, mina, question(one, two, `{"username":"jwt:carl"}`))
	must(t, err)
	if report.Allowed || !strings.Contains(report.Message, `User "jwt:carl"`) {
		t.Errorf("about one without grants: %+v", report)
	}
}

// report is the answer of /review.
type report struct {
	Allowed bool
	Mode    string
	Changes []struct{ Path string }
	Checks  []struct{ Verb string }
	Message string
}

func (s *scene) review(t *testing.T, token, question string) (report, error) {
	t.Helper()
	var out report
	code, body := s.tell(t, http.MethodPost, "/review", token, question)
	if code != http.StatusOK {
		return out, fmt.Errorf("%d: %s", code, body)
	}
	return out, json.Unmarshal([]byte(body), &out)
}

// TestKEP3331_Permissions: every authenticated user may read the catalogue.
func TestKEP3331_Permissions(t *testing.T) {
	s := on(t, broken)
	paul := s.mustToken(t, person{name: "paul"})
	code, body := s.tell(t, http.MethodGet, "/permissions?group=apps&version=v1&kind=Deployment", paul, "")
	if code != http.StatusOK || !strings.Contains(body, "granular:scale") {
		t.Errorf("%d: %.1000s", code, body)
	}
}

// TestKEP3331_BadTokens: all bad tokens get the same answer, and only the log has the reason.
func TestKEP3331_BadTokens(t *testing.T) {
	s := on(t, broken)
	_, without := s.tell(t, http.MethodPost, "/review", "", question(one, two, ""))
	sign := func(change func(map[string]any), how issuer.Token) string {
		claims := person{name: "eve", groups: []string{scalers}}.claims()
		change(claims)
		token, err := s.issuer.Sign(claims, how)
		must(t, err)
		return token
	}
	same := func(map[string]any) {}
	for name, token := range map[string]string{
		"no token at all":     "abc",
		"expired":             sign(same, issuer.Token{Expired: true}),
		"unsigned":            sign(same, issuer.Token{Algorithm: "none"}),
		"a key that is not":   sign(same, issuer.Token{ClaimedKeyID: "other"}),
		"another audience":    sign(func(c map[string]any) { c["aud"] = "others" }, issuer.Token{}),
		"another issuer":      sign(func(c map[string]any) { c["iss"] = "https://issuer.example.com" }, issuer.Token{}),
		"no name":             sign(func(c map[string]any) { delete(c, "preferred_username") }, issuer.Token{}),
		"claims that are not": sign(func(c map[string]any) { c["iat"] = 0 }, issuer.Token{}),
	} {
		for _, path := range []string{"/review", "/permissions"} {
			method, body := http.MethodPost, question(one, two, "")
			if path == "/permissions" {
				method, body = http.MethodGet, ""
			}
			code, answer := s.tell(t, method, path, token, body)
			if code != http.StatusUnauthorized || answer != without {
				t.Errorf("%s: %s: %d %q, want 401 and the common message %q", name, path, code, answer, without)
			}
		}
	}
	log, err := os.ReadFile(filepath.Join(s.Dir(), "fieldperm-webhook.log"))
	must(t, err)
	for _, part := range []string{"is not a JWT", "is expired", "issuer.audiences", "is signed by none of the issuer's keys", "is none of jwt[].issuer.url"} {
		if !strings.Contains(string(log), part) {
			t.Errorf("the log does not say %q: %s", part, s.WebhookLogTail())
		}
	}
}

// TestKEP3331_TokensOnWebhooks: a user with a token may not ask the webhooks about other users. Only the named callers may: kube-apiserver,
// which calls /authorize with a token in all tests here.
func TestKEP3331_TokensOnWebhooks(t *testing.T) {
	s := on(t, broken)
	const review = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"jwt:bob","groups":["jwt:scalers"],
		"resourceAttributes":{"verb":"update","group":"apps","version":"v1","resource":"deployments","namespace":"plain","name":"web"}}}`
	admission := question(one, two, scalerBob)
	olga, server := s.mustToken(t, person{name: "olga", groups: []string{scalers}}), s.mustToken(t, person{name: "kube-apiserver"})
	for path, body := range map[string]string{"/authorize": review, "/admit/granular": admission, "/admit/uncovered": admission} {
		for name, token := range map[string]string{"none": "", "of another user": olga} {
			if code, answer := s.tell(t, http.MethodPost, path, token, body); code != http.StatusUnauthorized {
				t.Errorf("%s: token %s: %d, want 401: %s", path, name, code, answer)
			}
		}
	}
	if code, answer := s.tell(t, http.MethodPost, "/authorize", server, review); code != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
		t.Errorf("/authorize by the named caller: %d: %s", code, answer)
	}
	if code, answer := s.tell(t, http.MethodGet, "/metrics", server, ""); code != http.StatusUnauthorized {
		t.Errorf("/metrics by a token: %d, want 401: %.200s", code, answer)
	}
}

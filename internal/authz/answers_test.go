package authz

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

func decide(t *testing.T, c *Chain) (fieldperm.Decision, error) {
	t.Helper()
	return fieldperm.Decide(t.Context(), c.For(request()), fieldperm.Review{Generic: []string{"update"}}, fieldperm.Limits{})
}

// The first webhook fails and is skipped, although it would allow. A denial by a later one is then not a denial by policy.
func TestKEP3221_P4_ADenialBehindAFailureIsAFailure(t *testing.T) {
	p := newPlace(t)
	failing, denying := newRemote(t, code(http.StatusInternalServerError)), newRemote(t, deny("no"))
	p.configure(hook{name: "granter", kubeconfig: p.kubeconfig("a", failing), policy: "NoOpinion"}, hook{name: "protector", kubeconfig: p.kubeconfig("b", denying)})
	if d, err := decide(t, p.chain(Settings{})); err == nil || d.Allowed || !strings.Contains(err.Error(), `"granter"`) {
		t.Errorf("%+v, %v", d, err)
	}
}

// A kube-apiserver adds an evaluationError to its answer if a webhook of its chain is down.
func TestP4_AReviewOfAChainThatFailedIsNoDenialAndIsNotCached(t *testing.T) {
	failed := status(authorizationv1.SubjectAccessReviewStatus{EvaluationError: "granter: connection refused"})
	api := newRemote(t, failed)
	c, err := NewChain(t.Context(), Settings{Cluster: api.Config(), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := decide(t, c); err == nil || d.Allowed || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%+v, %v", d, err)
	}
	if err := c.current.Load().webhooks[0].healthy(t.Context()); err != nil {
		t.Errorf("it answers, but the health check says %v", err)
	}
	// A user with a more specific verb needs no other verb.
	api.become(func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
		if review.Spec.ResourceAttributes.Verb == "granular" {
			allow("")(w, r, review)
			return
		}
		failed(w, r, review)
	})
	if d, err := decide(t, c); err != nil || !d.Allowed {
		t.Errorf("the marker is held: %+v, %v", d, err)
	}
	api.become(allow(""))
	if d, err := decide(t, c); err != nil || d.Mode != fieldperm.ModeGeneric {
		t.Errorf("afterwards: %+v, %v", d, err)
	}
	// An explicit denial is a denial, even if an authorizer failed as well.
	api = newRemote(t, status(authorizationv1.SubjectAccessReviewStatus{Denied: true, EvaluationError: "x"}))
	if c, err = NewChain(t.Context(), Settings{Cluster: api.Config()}); err != nil {
		t.Fatal(err)
	}
	if d, err := decide(t, c); err != nil || d.Allowed || d.Denial == nil {
		t.Errorf("denied: %+v, %v", d, err)
	}
}

func TestKEP3221_P4_AnInvalidReviewIsAFailure(t *testing.T) {
	const head = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview"`
	for name, text := range map[string]string{
		"empty object": `{}`, "null": `null`, "health page": `{"status":{"phase":"ok"}}`, "array": `[]`, "string": `"x"`,
		"a status":       `{"apiVersion":"v1","kind":"Status","status":"Success"}`,
		"no status":      head + `}`,
		"nothing said":   head + `,"status":{"reason":"hm"}}`,
		"other version":  `{"apiVersion":"authorization.k8s.io/v2","kind":"SubjectAccessReview","status":{"allowed":true}}`,
		"self review":    `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":true}}`,
		"names by case":  head + `,"status":{"Allowed":false,"Denied":true}}`,
		"status is null": head + `,"status":null}`,
		"too long":       head + `,"status":{"allowed":true,"reason":"` + strings.Repeat("x", mostAnswer) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.configure(hook{name: "protector", kubeconfig: p.kubeconfig("a", newRemote(t, body(text))), policy: "Deny"}, rbacEntry)
			c := p.chain(Settings{newRoles: mayAll(t, "alice")})
			if d, err := decide(t, c); err == nil || d.Allowed {
				t.Errorf("%+v, %v", d, err)
			}
			if c.current.Load().webhooks[0].healthy(t.Context()) == nil {
				t.Error("the health check is content")
			}
		})
	}
	p := newPlace(t)
	p.configure(hook{name: "protector", kubeconfig: p.kubeconfig("a", newRemote(t, body(head+`,"status":{"denied":true}}`))), policy: "Deny"}, rbacEntry)
	if d, err := decide(t, p.chain(Settings{newRoles: mayAll(t, "alice")})); err != nil || d.Allowed {
		t.Errorf("a valid denial: %+v, %v", d, err)
	}
}

func TestKEP3221_NoQuestionFollowsARedirect(t *testing.T) {
	p := newPlace(t)
	seen := make(chan string, 10)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true}}`)
	}))
	t.Cleanup(plain.Close)
	a := newRemote(t, func(w http.ResponseWriter, r *http.Request, _ *authorizationv1.SubjectAccessReview) {
		http.Redirect(w, r, plain.URL, http.StatusTemporaryRedirect)
	})
	p.configure(hook{name: "moved", kubeconfig: p.kubeconfig("a", a)})
	if d, err := decide(t, p.chain(Settings{})); err == nil || d.Allowed || len(seen) > 0 {
		t.Errorf("%+v, %v, %d requests at the other address", d, err, len(seen))
	}
}

// Callers that ask and leave must not leave a question in progress each time.
func TestP8_ARequestEndsWithItsLastWaiter(t *testing.T) {
	g := newGate()
	defer close(g.open)
	api := newRemote(t, g.then(allow("")))
	c, err := NewChain(t.Context(), Settings{Cluster: api.Config()})
	if err != nil {
		t.Fatal(err)
	}
	w := c.current.Load().webhooks[0]
	under := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.flights)
	}
	first, leave := context.WithCancel(t.Context())
	second, leaveToo := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, ctx := range []context.Context{first, second} {
		go func() {
			_, err := c.For(request()).Authorize(ctx, "granular", false)
			ended <- err
		}()
	}
	until(t, "both wait for one question", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, f := range w.flights {
			return f.waiting == 2
		}
		return false
	})
	<-g.waits
	leave()
	if err := <-ended; err == nil || under() != 1 {
		t.Errorf("the first left (%v), and %d questions are under way", err, under())
	}
	leaveToo()
	if err := <-ended; err == nil || under() != 0 {
		t.Errorf("the last left (%v), and %d questions are under way", err, under())
	}
}

// A webhook that is down and never answered must not block the new certificate of another webhook.
func TestKEP3221_ARotationDoesNotWaitForAnotherWebhook(t *testing.T) {
	p := newPlace(t)
	protector, down := newRemote(t, pass()), newRemote(t, pass())
	p.configure(
		hook{name: "protector", kubeconfig: p.kubeconfig("a", protector), more: keepNone, timeout: "1s"},
		hook{name: "granter", kubeconfig: p.kubeconfig("b", down), policy: "NoOpinion", more: keepNone, timeout: "1s"}, rbacEntry)
	c := run(t, p.chain(Settings{newRoles: mayAll(t, "alice")}))
	if d, err := decide(t, c); err != nil || !d.Allowed {
		t.Fatalf("%+v, %v", d, err)
	}
	down.Close()
	pair := certificate(t)
	protector.rotated.Store(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	protector.CloseClientConnections()
	if d, err := decide(t, c); err == nil || d.Allowed {
		t.Errorf("the new certificate is trusted before the file has its CA: %+v, %v", d, err)
	}
	rotated := &fakeapi.Server{Server: &httptest.Server{TLS: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}}}
	p.write("a.ca", string(rotated.CA()))
	until(t, "the rotated certificate is trusted", func() bool {
		d, err := decide(t, c)
		return err == nil && d.Allowed
	})
}

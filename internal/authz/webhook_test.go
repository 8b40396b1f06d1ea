package authz

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// faults returns all ways in which a webhook can fail to answer with a review.
func faults() map[string]answer {
	return map[string]answer{
		"hangs":               hang(),
		"drops connections":   drop(),
		"says 500":            code(http.StatusInternalServerError),
		"says 503":            code(http.StatusServiceUnavailable),
		"says 404":            code(http.StatusNotFound),
		"says 401":            code(http.StatusUnauthorized),
		"answers with HTML":   body("<html>"),
		"answers with half":   body(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":true`),
		"answers nothing":     body(""),
		"other kind":          body(`{"apiVersion":"v1","kind":"Pod","status":{"allowed":true}}`),
		"other version":       body(`{"apiVersion":"authorization.k8s.io/v2","kind":"SubjectAccessReview","status":{"allowed":true}}`),
		"answer of no review": body(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":"true"}}`),
	}
}

// Each fault has three outcomes. With failurePolicy Deny the caller gets an error, and so a 500. With NoOpinion, other authorizers
// may allow. If none does, the result is a failure, and not a denial by policy (P4).
func TestKEP3221_P4_FailurePolicyDecidesWhenAWebhookFails(t *testing.T) {
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			timeout := "10s"
			if name == "hangs" {
				timeout = "100ms"
			}
			r := newRemote(t, fault)
			h := hook{name: "failing", kubeconfig: p.kubeconfig("k", r), timeout: timeout, policy: "Deny"}
			p.configure(h, rbacEntry)
			answer, err := p.chain(Settings{newRoles: mayAll(t, "alice")}).For(request()).Authorize(t.Context(), "update", false)
			if err == nil || answer != (fieldperm.AuthorizerDecision{}) || !strings.Contains(err.Error(), `authorizer "failing"`) {
				t.Errorf("Deny: %+v, %v", answer, err)
			}
			h.policy = "NoOpinion"
			p.configure(h, rbacEntry)
			chain := p.chain(Settings{newRoles: mayAll(t, "alice")})
			answer, err = chain.For(request()).Authorize(t.Context(), "update", false)
			if err != nil || !answer.Allowed() || answer.By != "rbac" {
				t.Errorf("NoOpinion, and RBAC allows: %+v, %v", answer, err)
			}
			answer, err = chain.For(by("bob")).Authorize(t.Context(), "update", false)
			if err != nil || answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion, Failure: answer.Failure}) || answer.Failure == nil || !strings.Contains(answer.Failure.Error(), `authorizer "failing"`) {
				t.Errorf("NoOpinion, and no authorizer allows: %+v, %v", answer, err)
			}
			// A failure is not cached.
			r.become(allow("again"))
			if answer, err = chain.For(by("bob")).Authorize(t.Context(), "update", false); err != nil || !answer.Allowed() {
				t.Errorf("after the fault: %+v, %v", answer, err)
			}
		})
	}
}

func TestKEP3221_P4_UnreachableWebhook(t *testing.T) {
	for policy, allowed := range map[string]bool{"Deny": false, "NoOpinion": true} {
		p := newPlace(t)
		r := newRemote(t, pass())
		p.configure(hook{name: "gone", kubeconfig: p.kubeconfig("k", r), policy: policy}, rbacEntry)
		r.Close()
		var seen notes
		answer, err := p.chain(Settings{newRoles: mayAll(t, "alice"), Observer: &seen}).For(request()).Authorize(t.Context(), "update", false)
		if answer.Allowed() != allowed || (err == nil) != allowed {
			t.Errorf("%s: %+v, %v", policy, answer, err)
		}
		if n := seen.entries()["gone"]; n != 0 {
			t.Errorf("%s: %d answers are kept of a webhook that gave none", policy, n)
		}
	}
}

// An answer that both allows and denies is an error under each failurePolicy, even from the cache.
func TestP4_BothAllowedAndDeniedIsNoAllow(t *testing.T) {
	for _, policy := range []string{"Deny", "NoOpinion"} {
		p := newPlace(t)
		r := newRemote(t, both())
		var seen notes
		p.configure(hook{name: "both", kubeconfig: p.kubeconfig("k", r), policy: policy, more: "authorizedTTL: 1h\nunauthorizedTTL: 1h"}, rbacEntry)
		chain := p.chain(Settings{newRoles: mayAll(t, "alice"), Observer: &seen})
		for range 2 {
			if answer, err := chain.For(request()).Authorize(t.Context(), "update", true); err == nil || answer != (fieldperm.AuthorizerDecision{}) {
				t.Errorf("%s: got %+v, %v", policy, answer, err)
			}
		}
		if r.questions() != 1 || seen.entries()["both"] != 1 {
			t.Errorf("%s: asked %d times, %v are kept", policy, r.questions(), seen.entries())
		}
	}
}

func TestKEP3221_TransientFaultIsTriedAgain(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, nil)
	r.become(func(w http.ResponseWriter, req *http.Request, review *authorizationv1.SubjectAccessReview) {
		if r.questions() < 4 {
			code(http.StatusInternalServerError)(w, req, review)
			return
		}
		allow("at last")(w, req, review)
	})
	p.configure(hook{name: "shaky", kubeconfig: p.kubeconfig("k", r)})
	answer, err := p.chain(Settings{}).For(request()).Authorize(t.Context(), "update", false)
	if err != nil || !answer.Allowed() || r.questions() != 4 {
		t.Errorf("got %+v, %v after %d times", answer, err, r.questions())
	}
}

func TestKEP3221_SlowAnswerIsAnAnswer(t *testing.T) {
	p := newPlace(t)
	g := newGate()
	r := newRemote(t, g.then(allow("after all")))
	p.configure(hook{name: "slow", kubeconfig: p.kubeconfig("k", r), timeout: "30s"})
	chain := p.chain(Settings{})
	go func() {
		<-g.waits
		close(g.open)
	}()
	if answer, err := chain.For(request()).Authorize(t.Context(), "update", false); err != nil || !answer.Allowed() {
		t.Errorf("got %+v, %v", answer, err)
	}
}

// A caller leaves when its own context ends, not at the timeout of the webhook.
func TestKEP3221_P4_CallerDoesNotWaitForTheTimeoutOfAWebhook(t *testing.T) {
	p := newPlace(t)
	g := newGate()
	r := newRemote(t, g.then(pass()))
	defer close(g.open)
	quick := newRemote(t, pass())
	p.configure(hook{name: "quick", kubeconfig: p.kubeconfig("q", quick), timeout: "30s"}, hook{name: "hanging", kubeconfig: p.kubeconfig("k", r), timeout: "30s"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-g.waits
		cancel()
	}()
	answer, err := p.chain(Settings{}).For(request()).Authorize(ctx, "update", false)
	if !errors.Is(err, context.Canceled) || answer != (fieldperm.AuthorizerDecision{}) || !strings.Contains(err.Error(), `authorizer "hanging"`) {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestKEP3221_SubjectAccessReviewVersions(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		p := newPlace(t)
		r := newRemote(t, allow(version))
		p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), version: version})
		answer, err := p.chain(Settings{}).For(request()).Authorize(t.Context(), "update", false)
		if err != nil || answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: version, By: "hook"}) {
			t.Errorf("%s: %+v, %v", version, answer, err)
		}
		if got := r.last().APIVersion; got != "authorization.k8s.io/"+version {
			t.Errorf("%s: was sent %s", version, got)
		}
	}
}

func TestKEP3221_KubeconfigNamesServerAndCredentials(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r)})
	if _, err := p.chain(Settings{}).For(request()).Authorize(t.Context(), "update", false); err != nil {
		t.Fatal(err)
	}
	if r.paths[0] != "/k" || r.headers[0].Get("Authorization") != "Bearer secret" {
		t.Errorf("asked at %s as %s", r.paths[0], r.headers[0].Get("Authorization"))
	}
	// The certificate of another webhook is not signed by this CA.
	other := newRemote(t, allow(""))
	p.write("k.ca", string(other.CA()))
	if answer, err := p.chain(Settings{}).For(request()).Authorize(t.Context(), "update", false); err == nil || !strings.Contains(err.Error(), "x509") || answer.Allowed() {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestKEP3221_MatchConditionsSelectTheWebhook(t *testing.T) {
	const resource = "has(request.resourceAttributes)"
	for name, c := range map[string]struct {
		conditions []string
		policy     string
		user       string // RBAC allows alice
		asked      bool
		err        bool
		by         string
	}{
		"all are true":                     {[]string{resource, "request.user == 'alice'", "request.resourceAttributes.verb == 'update'"}, "Deny", "alice", true, false, "hook"},
		"one is false":                     {[]string{resource, "request.user == 'bob'"}, "Deny", "alice", false, false, "rbac"},
		"one is false, no other allows":    {[]string{resource, "request.user == 'alice'"}, "Deny", "bob", false, false, ""},
		"error under Deny":                 {[]string{"request.nonResourceAttributes.path == '/'"}, "Deny", "alice", false, true, ""},
		"error under NoOpinion":            {[]string{"request.nonResourceAttributes.path == '/'"}, "NoOpinion", "alice", false, false, "rbac"},
		"error, no other allows":           {[]string{"request.nonResourceAttributes.path == '/'"}, "NoOpinion", "bob", false, true, ""},
		"error and false":                  {[]string{"request.nonResourceAttributes.path == '/'", "false"}, "Deny", "alice", false, false, "rbac"},
		"error and true":                   {[]string{"true", "request.nonResourceAttributes.path == '/'"}, "Deny", "alice", false, true, ""},
		"extra of the generic permission":  {[]string{"'example.com/scopes' in request.extra", "request.uid == '7'", "'team' in request.groups"}, "Deny", "alice", true, false, "hook"},
		"attributes are those of the user": {[]string{"request.resourceAttributes.namespace == 'shop' && request.resourceAttributes.group == 'apps' && request.resourceAttributes.resource == 'deployments' && request.resourceAttributes.name == 'web'"}, "Deny", "alice", true, false, "hook"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			r := newRemote(t, deny("no"))
			p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), policy: c.policy, conditions: c.conditions}, rbacEntry)
			req := request()
			req.UserInfo.Username = c.user
			answer, err := p.chain(Settings{newRoles: mayAll(t, "alice")}).For(req).Authorize(t.Context(), "update", false)
			if (cmp.Or(err, answer.Failure) != nil) != c.err || answer.By != c.by || answer.Allowed() != (c.by == "rbac") {
				t.Errorf("got %+v, %v", answer, err)
			}
			if (r.questions() > 0) != c.asked {
				t.Errorf("asked %d times", r.questions())
			}
		})
	}
}

func TestKEP3221_TTLsAreThoseOfTheFile(t *testing.T) {
	const long = "authorizedTTL: 1h\nunauthorizedTTL: 1h\n"
	for name, c := range map[string]struct {
		more            string
		allowed, denied int // round trips for three questions
	}{
		"defaults":         {"", 1, 1},
		"long":             {long, 1, 1},
		"allowed not kept": {long + "cacheAuthorizedRequests: false", 3, 1},
		"denied not kept":  {long + "cacheUnauthorizedRequests: false", 1, 3},
		"neither is kept":  {long + keepNone, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range []struct {
				answer answer
				want   int
			}{{allow(""), c.allowed}, {deny(""), c.denied}, {pass(), c.denied}} {
				p := newPlace(t)
				r := newRemote(t, a.answer)
				var seen notes
				p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), more: c.more})
				chain := p.chain(Settings{Observer: &seen})
				for range 3 {
					if _, err := chain.For(request()).Authorize(t.Context(), "update", false); err != nil {
						t.Fatal(err)
					}
				}
				kept := 0
				if a.want == 1 {
					kept = 1
				}
				if got := seen.entries(); r.questions() != a.want || got["hook"] != kept || len(got) != 1 {
					t.Errorf("asked %d times, want %d; the cache holds %v", r.questions(), a.want, got)
				}
			}
		})
	}
}

func TestKEP3221_AnswersExpire(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	var seen notes
	p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), more: "authorizedTTL: 1ms"})
	chain := p.chain(Settings{Observer: &seen})
	a := chain.For(request())
	until(t, "it is asked anew", func() bool {
		if _, err := a.Authorize(t.Context(), "update", false); err != nil {
			t.Fatal(err)
		}
		return r.questions() > 1
	})
	until(t, "the cache is empty", func() bool { return seen.entries()["hook"] == 0 })
}

func TestP8_ThousandEqualChecksAreOneRoundTrip(t *testing.T) {
	p := newPlace(t)
	g := newGate()
	r := newRemote(t, g.then(allow("")))
	var seen notes
	p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r)})
	chain := p.chain(Settings{Observer: &seen})
	done := make(chan error)
	for range 1000 {
		go func() {
			answer, err := chain.For(request()).Authorize(t.Context(), "update", false)
			if err == nil && answer.By != "hook" {
				err = errors.New("decided by " + answer.By)
			}
			done <- err
		}()
	}
	<-g.waits
	close(g.open)
	for range 1000 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := r.questions(); n != 1 {
		t.Errorf("%d round trips", n)
	}
	if n := seen.seen["from shared"] + seen.seen["from hit"]; n != 999 || seen.seen["check allowed"] != 1000 {
		t.Errorf("saw %v", seen.seen)
	}
}

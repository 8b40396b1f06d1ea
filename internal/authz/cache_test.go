package authz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	webhookauthorizer "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// inProcess returns a remote that is called without a network, so that a test with a fake clock can use it, and a client
// configuration for it in place of a kube-apiserver.
func inProcess(a answer) (*remote, *rest.Config) {
	r := &remote{answer: a}
	return r, &rest.Config{Host: "http://in.process", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		recorded := httptest.NewRecorder()
		r.ServeHTTP(recorded, request)
		return recorded.Result(), nil
	})}
}

func mustAsk(t *testing.T, a fieldperm.Authorizer, verb string, generic bool) fieldperm.AuthorizerDecision {
	t.Helper()
	answer, err := a.Authorize(t.Context(), verb, generic)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// A decision is valid for its TTL, from its arrival. A permission granted or revoked meanwhile has an effect only after that.
func TestP8_AnAnswerCountsForExactlyItsTTL(t *testing.T) {
	const took = 2 * time.Second
	slowly := func(a answer) answer {
		return func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
			time.Sleep(took)
			a(w, r, review)
		}
	}
	for name, c := range map[string]struct {
		before, after answer
		ttl           time.Duration
	}{
		"revoked":          {allow(""), pass(), 10 * time.Second},
		"denied":           {allow(""), deny(""), 10 * time.Second},
		"granted":          {pass(), allow(""), 3 * time.Second},
		"no longer denied": {deny(""), allow(""), 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t)
				r, cluster := inProcess(slowly(c.before))
				p.configure(hook{name: "api", more: "authorizedTTL: 10s\nunauthorizedTTL: 3s"})
				var seen notes
				a := p.chain(Settings{Cluster: cluster, Observer: &seen}).For(request())
				started := time.Now()
				first := mustAsk(t, a, "update", false)
				if time.Since(started) != took {
					t.Fatalf("the first took %s", time.Since(started))
				}
				r.become(c.after)
				for _, pause := range []time.Duration{0, c.ttl / 2, c.ttl/2 - time.Nanosecond} {
					time.Sleep(pause)
					if got := mustAsk(t, a, "update", false); got != first || r.questions() != 1 || seen.entries()["api"] != 1 {
						t.Errorf("%s after the answer: %+v, asked %d times, %v are kept", time.Since(started)-took, got, r.questions(), seen.entries())
					}
				}
				time.Sleep(time.Nanosecond)
				if n := seen.entries()["api"]; n != 0 {
					t.Errorf("%d are kept at the end of the TTL", n)
				}
				if got := mustAsk(t, a, "update", false); got.Allowed() == first.Allowed() || r.questions() != 2 {
					t.Errorf("at the end of the TTL: %+v, asked %d times", got, r.questions())
				}
			})
		})
	}
}

// A failed question is asked again. While a webhook fails, the answers of others are not a denial.
func TestP4_AFailureIsNeitherCachedNorHiddenByTheCache(t *testing.T) {
	p := newPlace(t)
	failing, other := newRemote(t, code(http.StatusBadRequest)), newRemote(t, nil)
	p.configure(hook{name: "failing", kubeconfig: p.kubeconfig("f", failing), policy: "NoOpinion"}, hook{name: "other", kubeconfig: p.kubeconfig("o", other)})
	for name, a := range map[string]answer{"denies": deny("no"), "has no opinion": pass()} {
		other.become(a)
		var seen notes
		asker := p.chain(Settings{Observer: &seen}).For(request())
		before := failing.questions()
		for i := range 3 {
			answer, err := asker.Authorize(t.Context(), "update", false)
			if err != nil || answer.Allowed() || answer.Failure == nil || !strings.Contains(answer.Failure.Error(), `"failing"`) {
				t.Errorf("the other %s: %+v, %v", name, answer, err)
			}
			if n := failing.questions() - before; n != i+1 || seen.entries()["failing"] != 0 || seen.entries()["other"] != 1 {
				t.Errorf("the other %s: the failing one was asked %d times of %d, and %v are kept", name, n, i+1, seen.entries())
			}
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	a := p.chain(Settings{}).For(request())
	failing.become(allow(""))
	mustAsk(t, a, "update", false)
	if answer, err := a.Authorize(gone, "update", false); !errors.Is(err, context.Canceled) || answer != (fieldperm.AuthorizerDecision{}) {
		t.Errorf("the cancelled caller got %+v, %v", answer, err)
	}
}

// echo answers with the question itself as the reason, so that an answer to another question is detected. Some questions are
// allowed.
func echo() answer {
	return func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
		said, _ := json.Marshal(review.Spec)
		status(authorizationv1.SubjectAccessReviewStatus{Allowed: len(said)%2 == 0, Reason: string(said)})(w, r, review)
	}
}

// anyRequest is made of a few texts that are similar to each other and to the separators in a key.
func anyRequest(random *rand.Rand) *admissionv1.AdmissionRequest {
	text := func() string {
		return []string{"", "a", "b", "ab", "1:a", "1:", "0:", "a1:b", "\x00", "fieldperm.dev/generic-only"}[random.IntN(10)]
	}
	req := request()
	u := &req.UserInfo
	u.Username, u.UID, u.Groups, u.Extra = text(), text(), nil, map[string]authenticationv1.ExtraValue{}
	for range random.IntN(3) {
		u.Groups = append(u.Groups, text())
	}
	for range random.IntN(3) {
		u.Extra[text()] = [][]string{nil, {text()}, {text(), text()}}[random.IntN(3)]
	}
	req.Namespace, req.Name, req.SubResource = text(), text(), text()
	req.Resource.Group, req.Resource.Version, req.Resource.Resource = text(), text(), text()
	return req
}

// TestP8_AnAnswerBelongsToItsOwnAttributes asks one chain many random questions that are similar to each other. The webhook answers
// with the question, so that the test detects an answer that was given to another question: with another user, uid, group, extra,
// namespace or name, or the generic instead of the granular question about the same verb.
func TestP8_AnAnswerBelongsToItsOwnAttributes(t *testing.T) {
	r, cluster := inProcess(echo())
	chain, err := NewChain(t.Context(), Settings{Cluster: cluster, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	texts := map[string]bool{}
	for range 25 {
		req := anyRequest(random)
		// Each of the following requests differs in one field.
		for i := range 12 {
			switch one := anyRequest(random); i {
			case 1:
				req.UserInfo.Username = one.UserInfo.Username
			case 2:
				req.UserInfo.UID = one.UserInfo.UID
			case 3:
				req.UserInfo.Groups = one.UserInfo.Groups
			case 4:
				req.UserInfo.Extra = one.UserInfo.Extra
			case 5:
				req.Namespace = one.Namespace
			case 6:
				req.Name = one.Name
			case 7:
				req.SubResource = one.SubResource
			case 8:
				req.Resource.Group = one.Resource.Group
			case 9:
				req.Resource.Version = one.Resource.Version
			case 10:
				req.Resource.Resource = one.Resource.Resource
			case 11:
				req.UserInfo.Username, req.UserInfo.UID = req.UserInfo.UID, req.UserInfo.Username
			}
			a := chain.For(req)
			for _, verb := range []string{"", "a", "update", "1:a"} {
				for _, generic := range []bool{false, true} {
					want := sentBy(req, verb, generic)
					texts[want] = true
					got := mustAsk(t, a, verb, generic)
					if again := mustAsk(t, a, verb, generic); again != got {
						t.Fatalf("%+v, and then %+v", got, again)
					}
					if said := strings.TrimPrefix(got.Reason, defaultName+": "); said != want {
						t.Fatalf("asked\n%s\nand got the answer to\n%s", want, said)
					}
				}
			}
		}
	}
	// The same question must also be asked only once.
	if n := r.questions(); n > len(texts)+len(texts)/2 || len(texts) < 1500 {
		t.Errorf("%d round trips for %d questions", n, len(texts))
	}
}

// sentBy returns the question that a webhook must receive. It uses no code of fieldperm.
func sentBy(req *admissionv1.AdmissionRequest, verb string, generic bool) string {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: req.UserInfo.Username, UID: req.UserInfo.UID, Groups: req.UserInfo.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: req.Namespace, Name: req.Name, Verb: verb, Subresource: req.SubResource,
			Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource,
		},
	}
	for key, values := range req.UserInfo.Extra {
		if key != "fieldperm.dev/generic-only" {
			spec.Extra[key] = authorizationv1.ExtraValue(values)
		}
	}
	if generic {
		spec.Extra["fieldperm.dev/generic-only"] = authorizationv1.ExtraValue{"true"}
	}
	out, _ := json.Marshal(spec)
	return string(out)
}

// With a chain that asks fieldperm itself, a holder of the marker gets an Allow to the generic question unless A4's key is sent. So
// the generic and the granular question must have different keys, whichever comes first.
func TestA4_GenericAndGranularAnswersAreCachedApart(t *testing.T) {
	for _, first := range []bool{true, false} {
		r, cluster := inProcess(func(w http.ResponseWriter, req *http.Request, review *authorizationv1.SubjectAccessReview) {
			_, generic := review.Spec.Extra["fieldperm.dev/generic-only"]
			status(authorizationv1.SubjectAccessReviewStatus{Allowed: !generic})(w, req, review)
		})
		chain, err := NewChain(t.Context(), Settings{Cluster: cluster, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			// Each request is a new one, and the decisions are those of the chain.
			for _, generic := range []bool{first, !first} {
				if answer := mustAsk(t, chain.For(request()), "update", generic); answer.Allowed() == generic {
					t.Errorf("generic=%t: %+v", generic, answer)
				}
			}
		}
		if r.questions() != 2 {
			t.Errorf("asked %d times", r.questions())
		}
	}
}

// Decisions about attributes of excessive length are not cached. k8s.io/apiserver's authorizer must cache no decision at all: it
// would hold them until others replace them.
func TestP8_LongAttributesAreNotCachedNorAnyTwice(t *testing.T) {
	r, cluster := inProcess(pass())
	p := newPlace(t)
	var seen notes
	p.configure(hook{name: "api"})
	chain := p.chain(Settings{Cluster: cluster, Observer: &seen})
	rest := len("shop" + "update" + "apps" + "v1" + "deployments")
	for length, kept := range map[int]bool{longest - rest: false, longest - rest - 1: true} {
		before, entries := r.questions(), seen.entries()["api"]
		req := request()
		req.Name = strings.Repeat("x", length)
		for range 2 {
			mustAsk(t, chain.For(req), "update", false)
		}
		if n := r.questions() - before; (n == 1) != kept || (seen.entries()["api"]-entries == 1) != kept {
			t.Errorf("%d bytes: asked %d times, %v are kept", length, n, seen.entries())
		}
	}
	w := chain.current.Load().webhooks[0]
	given := 0
	w.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		given = len(a.GetPath())
		return authorizer.DecisionNoOpinion, "", nil
	})
	mustAsk(t, chain.For(by("another")), "update", false)
	if given < longest {
		t.Errorf("is asked with a path of %d bytes", given)
	}
	// With a cache in that authorizer, the count of questions shows what uncacheable is for.
	its, err := webhookauthorizer.New(cluster, "v1", time.Hour, time.Hour, wait.Backoff{Steps: 1}, authorizer.DecisionDeny, nil, "its", newCallMetrics(), authorizationcel.NewDefaultCompiler())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		uncacheable bool
		want        int
	}{{false, 1}, {true, 2}} {
		before := r.questions()
		for i := range 2 {
			var a authorizer.Attributes
			if a = forRequest(nil, by(fmt.Sprint("user ", c.uncacheable))).check("update", false); c.uncacheable {
				a = uncacheable{a}
			}
			_, _, err := its.Authorize(t.Context(), a)
			if err != nil || r.last().Spec.NonResourceAttributes != nil || r.last().Spec.ResourceAttributes.Resource != "deployments" {
				t.Errorf("%d: %v, asked %+v", i, err, r.last().Spec)
			}
		}
		if n := r.questions() - before; n != c.want {
			t.Errorf("uncacheable=%t: asked %d times, want %d", c.uncacheable, n, c.want)
		}
	}
}

// Decisions are stored and expire while others are read.
func TestP8_CachedAnswersCanBeReadAndReplacedAtTheSameTime(t *testing.T) {
	s, w := chainOf(t, "echo", noObserver{}, func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		answered(ctx)
		return authorizer.DecisionAllow, a.GetVerb(), nil
	})
	w.authorizedTTL = time.Microsecond
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2000 {
				verb := strconv.Itoa(i % 24)
				if got := mustAsk(t, forRequest(s, request()), verb, false); got.Reason != verb {
					t.Errorf("%q was answered with %q", verb, got.Reason)
				}
				if n := s.cacheEntries()["echo"]; n > 24 {
					t.Errorf("%d are kept", n)
				}
			}
		})
	}
	all.Wait()
}

// A user who asks about many objects, or with many verbs about one object, does not make the cache grow. What is asked last is cached, and a review
// uses no decision that is gone.
func TestP8_TheCacheIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		of   func(i int) *admissionv1.AdmissionRequest
		verb func(i int) string
	}{
		"objects": {func(i int) *admissionv1.AdmissionRequest { return by(strconv.Itoa(i)) }, func(int) string { return "update" }},
		"verbs":   {func(int) *admissionv1.AdmissionRequest { return request() }, strconv.Itoa},
	} {
		asked := 0
		s, _ := chainOf(t, "echo", noObserver{}, func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			answered(ctx)
			asked++
			return authorizer.DecisionAllow, fmt.Sprint(asked), nil
		})
		first := forRequest(s, c.of(0))
		mustAsk(t, first, c.verb(0), false)
		for i := 1; i <= cacheSize; i++ {
			for range 2 {
				if got := mustAsk(t, forRequest(s, c.of(i)), c.verb(i), false); got.Reason != fmt.Sprint(i+1) {
					t.Fatalf("%s: %d is %+v", name, i, got)
				}
			}
		}
		if n := s.cacheEntries()["echo"]; n != cacheSize {
			t.Errorf("%s: %d are kept", name, n)
		}
		if mustAsk(t, first, c.verb(0), false); asked != cacheSize+2 {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

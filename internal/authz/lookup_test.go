package authz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// counted sums the decisions and the exclusions of authorizers whose names have the suffix, and the decisions of RBAC.
func counted(t *testing.T, suffix string) (out struct{ decisions, exclusions float64 }) {
	t.Helper()
	families := gather(t)
	for metric, sum := range map[string]*float64{"decisions_total": &out.decisions, "match_condition_exclusions_total": &out.exclusions} {
		for _, m := range families["apiserver_authorization_"+metric].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "name" && (strings.HasSuffix(l.GetValue(), suffix) || l.GetValue() == "rbac") {
					*sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// TestP8_KEP3221_ACachedAnswerEqualsTheChains tries all pairs of opinions of two webhooks around RBAC. An answer from the cache
// must be the answer of the chain, and must be counted in the same way.
func TestP8_KEP3221_ACachedAnswerEqualsTheChains(t *testing.T) {
	opinions := map[string]answer{
		"allows": allow("A"), "denies": deny("D"), "allows silently": allow(""), "has no opinion": pass(),
		"has a reason and no opinion": status(authorizationv1.SubjectAccessReviewStatus{Reason: "N"}),
	}
	p := newPlace(t)
	first, second := newRemote(t, nil), newRemote(t, nil)
	suffix := fmt.Sprintf("-%x", time.Now().UnixNano()) // no other test uses this name
	// Match conditions exclude some namespaces.
	one := hook{name: "first" + suffix, kubeconfig: p.kubeconfig("1", first), conditions: []string{"!request.resourceAttributes.namespace.contains('x1')"}}
	two := hook{name: "second" + suffix, kubeconfig: p.kubeconfig("2", second), conditions: []string{"!request.resourceAttributes.namespace.contains('x2')"}}
	p.configure(one, rbacEntry, two)
	var seen notes
	chain := p.chain(Settings{newRoles: mayAll(t, "alice"), Observer: &seen})
	questions := 0
	for name1, opinion1 := range opinions {
		for name2, opinion2 := range opinions {
			for _, excluded := range []string{"", "x1", "x2", "x1x2"} {
				for _, user := range []string{"alice", "bob"} { // RBAC allows alice.
					first.become(opinion1)
					second.become(opinion2)
					what := fmt.Sprintf("the first %s, the second %s, excluded: %q, %s asks", name1, name2, excluded, user)
					req := by(user)
					req.Namespace = fmt.Sprint(questions, excluded)
					questions++
					before, seenBefore := counted(t, suffix), first.questions()+second.questions()
					want := mustAsk(t, chain.For(req), "update", false)
					after, asked, source := counted(t, suffix), first.questions()+second.questions(), "from hit"
					if asked == seenBefore {
						source = "from local"
					}
					seen.mu.Lock()
					seen.seen = nil
					seen.mu.Unlock()
					for range 2 {
						if got := mustAsk(t, chain.For(req), "update", false); got != want {
							t.Errorf("%s: %+v, and then %+v", what, want, got)
						}
					}
					if n := first.questions() + second.questions(); n != asked {
						t.Errorf("%s: %d more round trips", what, n-asked)
					}
					result := "check denied"
					if want.Allowed() {
						result = "check allowed"
					}
					seen.expect(t, what, map[string]int{result: 2, source: 2})
					end := counted(t, suffix)
					if end.decisions-after.decisions != 2*(after.decisions-before.decisions) || end.exclusions-after.exclusions != 2*(after.exclusions-before.exclusions) {
						t.Errorf("%s: counted %v, then %v, and %v after two more checks", what, before, after, end)
					}
				}
			}
		}
	}
	if n := first.questions(); questions != 200 || n != questions/2 {
		t.Errorf("the first was asked %d of %d questions", n, questions)
	}
}

// An authorizer that is asked again counts once. So does an authorizer that was excluded before.
func TestP8_KEP3221_CachedAnswersBeforeAMissCountOnce(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	suffix := fmt.Sprintf("-%x", time.Now().UnixNano())
	p.configure(
		hook{name: "none" + suffix, kubeconfig: p.kubeconfig("1", r), conditions: []string{"false"}},
		hook{name: "anew" + suffix, kubeconfig: p.path("1"), more: keepNone})
	chain := p.chain(Settings{})
	before := counted(t, suffix)
	for range 3 {
		mustAsk(t, chain.For(request()), "update", false)
	}
	got := counted(t, suffix)
	if n := got.decisions - before.decisions; n != 3 || got.exclusions-before.exclusions != 3 || r.questions() != 3 {
		t.Errorf("counted %v, and then %v, with %d round trips for 3 checks", before, got, r.questions())
	}
}

// switched is RBAC that a test can change.
func switched(now *atomic.Pointer[authorizer.AuthorizerFunc]) func(*rest.Config) (roles, error) {
	return func(*rest.Config) (roles, error) {
		return grants{Authorizer: authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			return (*now.Load())(ctx, a)
		})}, nil
	}
}

// RBAC decisions are never cached, before or after a webhook whose decisions are.
func TestP8_A6_RBACAnswersAreNotCached(t *testing.T) {
	boom := errors.New("boom")
	says := func(d authorizer.Decision, err error) *authorizer.AuthorizerFunc {
		f := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { return d, "", err })
		return &f
	}
	panics := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("boom") })
	p := newPlace(t)
	h := hook{name: "hook", kubeconfig: p.kubeconfig("k", newRemote(t, pass()))}
	for name, entries := range map[string][]any{"before": {rbacEntry, h}, "behind": {h, rbacEntry}} {
		p.configure(entries...)
		var now atomic.Pointer[authorizer.AuthorizerFunc]
		now.Store(says(authorizer.DecisionNoOpinion, nil))
		a := p.chain(Settings{newRoles: switched(&now)}).For(request())
		for range 2 {
			if answer := mustAsk(t, a, "update", false); answer.Allowed() {
				t.Errorf("%s: %+v", name, answer)
			}
			now.Store(says(authorizer.DecisionAllow, nil))
			if answer := mustAsk(t, a, "update", false); answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, By: "rbac"}) {
				t.Errorf("%s, granted: %+v", name, answer)
			}
			now.Store(says(authorizer.DecisionDeny, boom))
			if answer, err := a.Authorize(t.Context(), "update", false); !errors.Is(err, boom) || answer != (fieldperm.AuthorizerDecision{}) {
				t.Errorf("%s, failed: %+v, %v", name, answer, err)
			}
			now.Store(says(authorizer.DecisionNoOpinion, boom))
			if answer, err := a.Authorize(t.Context(), "update", false); err != nil || !errors.Is(answer.Failure, boom) || answer.Allowed() {
				t.Errorf("%s, failed without an opinion: %+v, %v", name, answer, err)
			}
			now.Store(&panics)
			if answer, err := a.Authorize(t.Context(), "update", false); err == nil || answer != (fieldperm.AuthorizerDecision{}) || !strings.Contains(err.Error(), `"rbac": panicked`) {
				t.Errorf("%s, panicked: %+v, %v", name, answer, err)
			}
			now.Store(says(authorizer.Decision(99), nil))
			if answer, err := a.Authorize(t.Context(), "update", false); err == nil && answer.Allowed() {
				t.Errorf("%s, with an unknown decision: %+v, %v", name, answer, err)
			}
			now.Store(says(authorizer.DecisionNoOpinion, nil))
		}
	}
}

// A condition may use A4's extra key and the verb, so its result for one question must not be used for another.
func TestA4_KEP3221_ConditionsAreAboutOneQuestion(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), conditions: []string{"!('fieldperm.dev/generic-only' in request.extra)", "request.resourceAttributes.verb != 'patch'"}})
	chain := p.chain(Settings{})
	for range 3 {
		for _, verb := range []string{"update", "patch"} {
			for _, generic := range []bool{true, false} {
				if answer := mustAsk(t, chain.For(request()), verb, generic); answer.Allowed() != (verb == "update" && !generic) {
					t.Errorf("%s, generic=%t: %+v", verb, generic, answer)
				}
			}
		}
	}
	if r.questions() != 1 {
		t.Errorf("asked %d times", r.questions())
	}
}

// A condition that cannot be evaluated is not an exclusion. It is evaluated again for each question.
func TestKEP3221_P4_AConditionThatFailsIsAnErrorEachTime(t *testing.T) {
	for _, policy := range []string{"Deny", "NoOpinion"} {
		p := newPlace(t)
		r := newRemote(t, allow(""))
		p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", r), policy: policy, conditions: []string{"request.nonResourceAttributes.path == '/'"}})
		chain := p.chain(Settings{})
		for range 3 {
			answer, err := chain.For(request()).Authorize(t.Context(), "update", false)
			if failure := cmp.Or(err, answer.Failure); failure == nil || answer.Allowed() || (err == nil) != (policy == "NoOpinion") || !strings.Contains(failure.Error(), `"hook"`) {
				t.Errorf("%s: %+v, %v", policy, answer, err)
			}
		}
		if r.questions() != 0 {
			t.Errorf("%s: asked %d times", policy, r.questions())
		}
	}
}

// A review asks about several verbs with the same attributes, mostly with cached decisions. These must cost almost nothing.
func TestP8_ACachedAnswerCostsAtMostFiveAllocations(t *testing.T) {
	_, cluster := inProcess(allow("because"))
	chain, err := NewChain(t.Context(), Settings{Cluster: cluster, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	a := chain.For(request())
	mustAsk(t, a, "update", true)
	if n := testing.AllocsPerRun(100, func() { mustAsk(t, a, "update", true) }); n > 5 {
		t.Errorf("%v allocations", n)
	}
}

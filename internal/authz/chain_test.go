package authz

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/configfile"
	"github.com/fieldperm/fieldperm/verbs"
)

func TestKEP3221_OrderIsPrecedence(t *testing.T) {
	p := newPlace(t)
	first, second := newRemote(t, pass()), newRemote(t, pass())
	one := hook{name: "first", kubeconfig: p.kubeconfig("1", first), more: keepNone}
	two := hook{name: "second", kubeconfig: p.kubeconfig("2", second), more: keepNone}
	p.configure(one, nodeEntry, rbacEntry, two)
	chain := p.chain(Settings{newRoles: mayAll(t, "alice")})
	for name, c := range map[string]struct {
		first, second     answer
		user              string
		want              fieldperm.AuthorizerDecision
		asks1, asks2, err bool
	}{
		"allow ends it":                {allow("1 says so"), deny(""), "bob", fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "1 says so", By: "first"}, true, false, false},
		"deny ends it":                 {deny("1 does not"), allow(""), "alice", fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: "1 does not", By: "first"}, true, false, false},
		"RBAC comes before the second": {pass(), deny(""), "alice", fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: `RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "all" to User "alice"`, By: "rbac"}, true, false, false},
		"the second is asked at last":  {pass(), allow("2 says so"), "bob", fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "2 says so", By: "second"}, true, true, false},
		"the second denies":            {pass(), deny("2 does not"), "bob", fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: "2 does not", By: "second"}, true, true, false},
		"nobody has an opinion":        {pass(), pass(), "bob", fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			first.become(c.first)
			second.become(c.second)
			before1, before2 := first.questions(), second.questions()
			answer, err := chain.For(by(c.user)).Authorize(t.Context(), "update", false)
			if err != nil || answer != c.want {
				t.Errorf("got %+v, %v, want %+v", answer, err, c.want)
			}
			if (first.questions() > before1) != c.asks1 || (second.questions() > before2) != c.asks2 {
				t.Errorf("asked the first %d times, the second %d times", first.questions()-before1, second.questions()-before2)
			}
		})
	}
}

func TestKEP3221_PrivilegedGroupComesFirst(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, deny("nobody"))
	p.configure(hook{name: "protector", kubeconfig: p.kubeconfig("k", r)})
	answer, err := p.chain(Settings{}).For(by("root", "system:masters")).Authorize(t.Context(), "update", true)
	if err != nil || answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, By: privileged}) || r.questions() != 0 {
		t.Errorf("got %+v, %v, and asked %d times", answer, err, r.questions())
	}
}

// The same code makes the default chain, so it is enough to check its configuration.
func TestKEP3221_DefaultChainAsksTheAPIServer(t *testing.T) {
	r := newRemote(t, allow("RBAC: allowed by someone"))
	cluster := r.Config()
	cluster.QPS, cluster.RateLimiter = 1, flowcontrol.NewFakeNeverRateLimiter()
	cluster.ContentConfig = rest.ContentConfig{AcceptContentTypes: "application/vnd.kubernetes.protobuf", GroupVersion: &authorizationv1.SchemeGroupVersion}
	wrapped := 0
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			wrapped++
			return next.RoundTrip(r)
		})
	})
	chain, err := NewChain(t.Context(), Settings{Cluster: cluster, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		answer, err := chain.For(request()).Authorize(t.Context(), "update", false)
		if err != nil || answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "RBAC: allowed by someone", By: "in-cluster-authorizer"}) {
			t.Errorf("got %+v, %v", answer, err)
		}
	}
	if r.questions() != 1 || wrapped != 1 || r.paths[0] != "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
		t.Errorf("asked %d times at %q, %d by the transport that was given", r.questions(), r.paths, wrapped)
	}
	if got := r.headers[0].Get("Accept"); !strings.Contains(got, "json") {
		t.Errorf("accepts %q", got)
	}
	if cluster.APIPath != "" || cluster.Timeout != 0 {
		t.Error("the configuration that was given is changed")
	}
	if chain.Ready() != nil || chain.Fault() != nil {
		t.Errorf("ready: %v, fault: %v", chain.Ready(), chain.Fault())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	chain.Run(ctx)

	uncached, err := NewChain(t.Context(), Settings{Cluster: r.Config()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _ = uncached.For(request()).Authorize(t.Context(), "update", false)
	}
	if r.questions() != 3 {
		t.Errorf("with no TTL: asked %d times, want 3", r.questions())
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fieldperm must be able to start before webhooks that depend on it.
func TestKEP3221_NewChainSendsNoRequest(t *testing.T) {
	p := newPlace(t)
	var all int
	r := newRemote(t, func(http.ResponseWriter, *http.Request, *authorizationv1.SubjectAccessReview) { all++ })
	p.configure(hook{name: "protector", kubeconfig: p.kubeconfig("k", r)}, hook{name: "cluster"})
	p.chain(Settings{Cluster: r.Config()})
	r.Close()
	if all != 0 {
		t.Errorf("asked %d times", all)
	}
	if run(t, p.chain(Settings{Cluster: r.Config()})).Fault() != nil {
		t.Error("a webhook that is not there at start is a fault")
	}
}

func TestKEP3221_StartFailsAtAFaultyFile(t *testing.T) {
	p := newPlace(t)
	start := func(s Settings) error {
		s.File = p.file()
		_, err := NewChain(t.Context(), s)
		return err
	}
	if err := start(Settings{}); err == nil || !strings.Contains(err.Error(), p.file()) {
		t.Errorf("no file: %v", err)
	}
	p.configure("- {type: AlwaysAllow, name: everyone}\n")
	var problems configfile.Problems
	if err := start(Settings{}); !errors.As(err, &problems) || problems[0].Line != 4 || problems[0].File != p.file() {
		t.Errorf("AlwaysAllow: %v", err)
	}
	p.configure(hook{name: "cluster"})
	if err := start(Settings{}); err == nil || !strings.Contains(err.Error(), "needs a cluster") {
		t.Errorf("no cluster: %v", err)
	}
	p.configure(rbacEntry)
	if err := start(Settings{}); err == nil || !strings.Contains(err.Error(), "needs a cluster") {
		t.Errorf("RBAC and no cluster: %v", err)
	}
	boom := errors.New("boom")
	err := start(Settings{Cluster: &rest.Config{}, newRoles: func(*rest.Config) (roles, error) { return nil, boom }})
	if !errors.Is(err, boom) {
		t.Errorf("RBAC that cannot be had: %v", err)
	}
}

func TestKEP3221_ReadyWhenRBACIs(t *testing.T) {
	p := newPlace(t)
	p.configure(rbacEntry)
	notYet := errors.New("has not been read")
	chain := p.chain(Settings{newRoles: func(*rest.Config) (roles, error) {
		return grants{
			Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
				return authorizer.DecisionDeny, "", notYet
			}),
			fault: notYet,
		}, nil
	}})
	if err := chain.Ready(); !errors.Is(err, notYet) {
		t.Errorf("ready: %v", err)
	}
	if answer, err := chain.For(request()).Authorize(t.Context(), "update", false); !errors.Is(err, notYet) || answer != (fieldperm.AuthorizerDecision{}) || !strings.Contains(err.Error(), `"rbac"`) {
		t.Errorf("got %+v, %v", answer, err)
	}
}

// The real RBAC sends no request before Run, and returns an error before it has read the roles.
func TestKEP3221_RBACIsThatOfTheCluster(t *testing.T) {
	p := newPlace(t)
	p.configure(rbacEntry)
	chain := p.chain(Settings{newRoles: newRoles})
	if chain.Ready() == nil {
		t.Error("ready without roles")
	}
	if _, err := chain.For(request()).Authorize(t.Context(), "update", false); err == nil {
		t.Error("an answer without roles")
	}
}

// The cost of a review counts the questions to the chain, not the requests that the chain sends.
func TestP3_ChainOfThreeWebhooksCostsOneCheckPerVerb(t *testing.T) {
	p := newPlace(t)
	hooks := []any{}
	var remotes []*remote
	for _, name := range []string{"one", "two", "three"} {
		r := newRemote(t, pass())
		remotes = append(remotes, r)
		hooks = append(hooks, hook{name: name, kubeconfig: p.kubeconfig(name, r)})
	}
	remotes[2].become(func(w http.ResponseWriter, r *http.Request, review *authorizationv1.SubjectAccessReview) {
		if verb := review.Spec.ResourceAttributes.Verb; verb == "patch" || verb == "update" {
			pass()(w, r, review)
			return
		}
		allow("yes")(w, r, review)
	})
	p.configure(hooks...)
	verb, err := verbs.Parse("granular:scale")
	if err != nil {
		t.Fatal(err)
	}
	review := fieldperm.Review{Generic: []string{"update", "patch"}, Requirements: []fieldperm.Requirement{{Chain: []verbs.Verb{verb}, Barrier: -1}}}
	decision, err := fieldperm.Decide(t.Context(), p.chain(Settings{}).For(request()), review, fieldperm.Limits{MaxChecks: 4})
	if err != nil || !decision.Allowed || len(decision.Checks) != 4 {
		t.Errorf("got %+v, %v", decision, err)
	}
	for i, r := range remotes {
		if r.questions() != 4 {
			t.Errorf("webhook %d was asked %d times for 4 checks", i, r.questions())
		}
	}
	for i, want := range []string{"", "", "three", "three"} {
		if got := decision.Checks[i].By; got != want {
			t.Errorf("check %d was decided by %q, want %q", i, got, want)
		}
	}
}

func TestFixedDecidesInProcess(t *testing.T) {
	a, err := mayAll(t, "alice")(nil)
	if err != nil {
		t.Fatal(err)
	}
	chain := Fixed("grants", a)
	for user, want := range map[string]string{"alice": "grants", "bob": ""} {
		answer, err := chain.For(by(user)).Authorize(t.Context(), "granular:scale", false)
		if err != nil || answer.Allowed() != (want != "") || answer.By != want {
			t.Errorf("%s: %+v, %v", user, answer, err)
		}
	}
	if chain.Ready() != nil || chain.Fault() != nil {
		t.Error("is not ready")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	chain.Run(ctx)
}

package authz

import (
	"context"
	"maps"
	"net/http"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// TestP8_ObserverNamesTheSourceOfAnswers uses real webhooks, whose caches cannot be seen from outside.
func TestP8_ObserverNamesTheSourceOfAnswers(t *testing.T) {
	p := newPlace(t)
	first, second := newRemote(t, pass()), newRemote(t, allow(""))
	ofTeam := []string{"'team' in request.groups"}
	p.configure(
		hook{name: "first", kubeconfig: p.kubeconfig("1", first), conditions: ofTeam, policy: "NoOpinion"}, rbacEntry,
		hook{name: "second", kubeconfig: p.kubeconfig("2", second), conditions: ofTeam, policy: "NoOpinion"})
	var seen notes
	chain := p.chain(Settings{newRoles: mayAll(t, "root"), Observer: &seen})
	ask := func(verb, user string, groups ...string) {
		_, _ = chain.For(by(user, groups...)).Authorize(t.Context(), verb, false)
	}
	ask("update", "alice", "team")
	seen.expect(t, "two webhooks", map[string]int{"check allowed": 1, "from miss": 1, "took allowed": 1})
	ask("update", "alice", "team")
	seen.expect(t, "again", map[string]int{"check allowed": 1, "from hit": 1})
	second.become(pass())
	ask("patch", "alice", "team")
	ask("patch", "alice", "team")
	seen.expect(t, "nobody has an opinion", map[string]int{"check denied": 2, "from miss": 1, "took denied": 1, "from hit": 1})
	ask("update", "root", "other")
	seen.expect(t, "the webhook before RBAC is skipped", map[string]int{"check allowed": 1, "from local": 1})
	ask("update", "nobody", "other")
	seen.expect(t, "all are skipped", map[string]int{"check denied": 1, "from local": 1})
	ask("update", "x", "system:masters")
	seen.expect(t, "nobody is asked", map[string]int{"check allowed": 1, "from local": 1})
	first.become(code(http.StatusBadRequest))
	ask("create", "root", "team")
	seen.expect(t, "one that fails is passed over", map[string]int{"check allowed": 1, "from miss": 1, "took allowed": 1})
	ask("create", "alice", "team")
	seen.expect(t, "one fails, and no other has an opinion", map[string]int{"check error": 1, "from miss": 1, "took error": 1})
}

// Facts about one webhook are not recorded for the next.
func TestP8_EachWebhookCountsForItself(t *testing.T) {
	p := newPlace(t)
	first, second := newRemote(t, pass()), newRemote(t, pass())
	p.configure(
		hook{name: "first", kubeconfig: p.kubeconfig("1", first), conditions: []string{"request.user in ['alice', 'carol']"}},
		hook{name: "second", kubeconfig: p.kubeconfig("2", second), conditions: []string{"request.user in ['bob', 'carol']"}})
	var seen notes
	chain := p.chain(Settings{Observer: &seen})
	for _, c := range []struct {
		user, source  string
		first, second int
	}{
		{"alice", "miss", 1, 0}, {"alice", "hit", 1, 0},
		{"bob", "miss", 1, 1}, {"bob", "hit", 1, 1},
		{"carol", "miss", 2, 2}, {"carol", "hit", 2, 2},
		{"dave", "local", 2, 2},
	} {
		if _, err := chain.For(by(c.user)).Authorize(t.Context(), "update", false); err != nil {
			t.Error(err)
		}
		if got, want := seen.entries(), map[string]int{"first": c.first, "second": c.second}; !maps.Equal(got, want) {
			t.Errorf("%+v: the caches hold %v", c, got)
		}
		want := map[string]int{"check denied": 1, "from " + c.source: 1}
		if c.source == "miss" {
			want["took denied"] = 1
		}
		seen.expect(t, c.user, want)
	}
}

func TestSpanOfACheckHasNoParameterAndNoUser(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	ctx, root := provider.Tracer("test").Start(t.Context(), "root")
	chain := Fixed("x", authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	}))
	if _, err := chain.For(request()).Authorize(ctx, "granular:datum(secret-key)", false); err != nil {
		t.Fatal(err)
	}
	root.End()
	if n := len(spans.Ended()); n != 2 {
		t.Fatalf("%d spans, want 2", n)
	}
	check := spans.Ended()[0]
	if check.Name() != "check" || check.Parent().SpanID() != root.SpanContext().SpanID() {
		t.Errorf("span %q is below %s", check.Name(), check.Parent().SpanID())
	}
	got := map[string]string{}
	for _, attribute := range check.Attributes() {
		got[string(attribute.Key)] = attribute.Value.String()
	}
	if want := map[string]string{"fieldperm.check.verb": "granular:datum", "fieldperm.check.generic": "false", "fieldperm.check.source": "local", "fieldperm.result": "allowed"}; !maps.Equal(got, want) {
		t.Errorf("attributes are %v, want %v", got, want)
	}
}

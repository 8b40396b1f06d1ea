package authz

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// notes is an Observer that counts.
type notes struct {
	mu   sync.Mutex
	seen map[string]int
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[string]int{}
	}
	n.seen[what]++
}

func (n *notes) Check(result string)                      { n.add("check " + result) }
func (n *notes) CheckFrom(source string)                  { n.add("from " + source) }
func (n *notes) CheckTook(result string, _ time.Duration) { n.add("took " + result) }

// expect compares and starts anew.
func (n *notes) expect(t *testing.T, when string, want map[string]int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !maps.Equal(n.seen, want) {
		t.Errorf("%s: saw %v, want %v", when, n.seen, want)
	}
	n.seen = nil
}

// TestP8_ObserverTellsHitsFromMisses goes by way of the real authorizer, whose cache does not show.
func TestP8_ObserverTellsHitsFromMisses(t *testing.T) {
	code := http.StatusOK
	b := &backend{answer: func(_ int, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, int) {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: spec.ResourceAttributes.Verb == "granular"}, code
	}}
	server := httptest.NewServer(b)
	defer server.Close()
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	var seen notes
	chain, err := Config{Client: clients.AuthorizationV1(), AllowTTL: time.Hour, DenyTTL: time.Hour, Observer: &seen}.New()
	if err != nil {
		t.Fatal(err)
	}
	a := For(chain, request())
	ask := func(verb string) { _, _ = a.Authorize(t.Context(), verb, false) }

	ask("granular")
	seen.expect(t, "first", map[string]int{"check allowed": 1, "from miss": 1, "took allowed": 1})
	ask("granular")
	seen.expect(t, "again", map[string]int{"check allowed": 1, "from hit": 1})
	ask("granular:scale")
	ask("granular:scale")
	seen.expect(t, "denied", map[string]int{"check denied": 2, "from miss": 1, "took denied": 1, "from hit": 1})
	b.mu.Lock()
	code = http.StatusInternalServerError
	b.mu.Unlock()
	ask("granular:image")
	seen.expect(t, "the API fails", map[string]int{"check error": 1, "from miss": 1, "took error": 1})
}

func TestP8_ObserverTellsWhoSharesAndWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var seen notes
		a := newShared(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			newRoundTrips().RecordWebhookEvaluation(ctx, "", "success")
			<-release
			return authorizer.DecisionAllow, "", nil
		}), time.Minute, &seen)
		first, hangUp := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _, _, _ = a.Authorize(first, question("alice", "update")) })
		synctest.Wait()
		for range 3 {
			wait.Go(func() { _, _, _ = a.Authorize(t.Context(), question("alice", "update")) })
		}
		synctest.Wait()
		hangUp()
		synctest.Wait()
		seen.expect(t, "whoever asked first hung up", map[string]int{"check canceled": 1})
		close(release)
		wait.Wait()
		seen.expect(t, "answered", map[string]int{"check allowed": 3, "from shared": 3, "from miss": 1, "took allowed": 1})
	})
}

func TestP4_ObserverSeesErrorsAsSuch(t *testing.T) {
	for name, chain := range map[string]authorizer.AuthorizerFunc{
		"panic": func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("boom") },
		"error with Allow": func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", errors.New("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var seen notes
			_, _, _ = newShared(chain, time.Minute, &seen).Authorize(t.Context(), question("alice", "update"))
			seen.expect(t, "failed before it was asked", map[string]int{"check error": 1})
		})
	}
}

func TestSpanOfACheckHasNoParameterAndNoUser(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	ctx, root := provider.Tracer("test").Start(t.Context(), "root")
	chain := Shared(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	}), time.Minute)
	if _, err := For(chain, request()).Authorize(ctx, "granular:datum(secret-key)", false); err != nil {
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
	if want := map[string]string{"fieldperm.check.verb": "granular:datum", "fieldperm.check.generic": "false", "fieldperm.check.source": "hit", "fieldperm.result": "allowed"}; !maps.Equal(got, want) {
		t.Errorf("attributes are %v, want %v", got, want)
	}
}

package authz

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// chainOf returns a chain of one webhook that a function stands in for.
func chainOf(t *testing.T, name string, observer Observer, f authorizer.AuthorizerFunc) (*snapshot, *webhook) {
	t.Helper()
	one := defaultChain(time.Hour).Authorizers[0]
	w, err := newWebhook(0, &one, &rest.Config{}, authorizationcel.NewDefaultCompiler())
	if err != nil {
		t.Fatal(err)
	}
	w.name, w.Authorizer = name, f
	return &snapshot{chain: &named{w, name}, observer: observer, webhooks: []*webhook{w}}, w
}

// answered makes a stand-in of a webhook count as one that has answered with a review.
func answered(ctx context.Context) { newCallMetrics().RecordWebhookEvaluation(ctx, "", "success") }

func TestP8_P7_EqualChecksAreSentOnceAndAllNameTheAuthorizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		s, w := chainOf(t, "decider", noObserver{}, func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			asked.Add(1)
			<-release
			return authorizer.DecisionAllow, "because", nil
		})
		var wait sync.WaitGroup
		for range 1000 {
			wait.Go(func() {
				if v, err := forRequest(s, by("alice")).Authorize(t.Context(), "granular:scale", false); !v.Allowed() || v.Reason != "because" || v.By != "decider" || err != nil {
					t.Errorf("got %+v, %v", v, err)
				}
			})
		}
		for user, verb := range map[string]string{"bob": "granular:scale", "alice": "granular:image"} {
			wait.Go(func() { _, _ = forRequest(s, by(user)).Authorize(t.Context(), verb, false) })
		}
		synctest.Wait()
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times for 3 different questions", n)
		}
		if n := len(w.flights); n != 3 {
			t.Errorf("%d are under way", n)
		}
		close(release)
		wait.Wait()
		if n := len(w.flights); n != 0 {
			t.Errorf("%d are still under way", n)
		}
	})
}

func TestP8_ACancelledCallerDoesNotFailAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, _ := chainOf(t, "slow", noObserver{}, func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			select {
			case <-release:
				return authorizer.DecisionAllow, "", nil
			case <-ctx.Done():
				return authorizer.DecisionNoOpinion, "", ctx.Err()
			}
		})
		first, cancelFirst := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if v, err := forRequest(s, request()).Authorize(first, "update", false); !errors.Is(err, context.Canceled) || v != (fieldperm.AuthorizerDecision{}) {
				t.Errorf("the cancelled caller got %v, %v", v, err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			if v, err := forRequest(s, request()).Authorize(t.Context(), "update", false); !v.Allowed() || err != nil {
				t.Errorf("the waiting caller got %v, %v", v, err)
			}
		})
		synctest.Wait()
		cancelFirst()
		synctest.Wait()
		close(release)
		wait.Wait()
	})
}

func TestP4_ACheckWithoutAnswerEndsInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := chainOf(t, "hangs", noObserver{}, func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			<-ctx.Done()
			return authorizer.DecisionAllow, "", ctx.Err()
		})
		started := time.Now()
		if v, err := forRequest(s, request()).Authorize(t.Context(), "update", false); !errors.Is(err, context.DeadlineExceeded) || v != (fieldperm.AuthorizerDecision{}) {
			t.Errorf("got %v, %v", v, err)
		}
		if took := time.Since(started); took != 29*time.Second {
			t.Errorf("after %s", took)
		}
	})
}

func TestP4_EachCallerHasItsOwnDeadlineAndTheNameOfTheAuthorizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, _ := chainOf(t, "slow", noObserver{}, func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			<-release
			return authorizer.DecisionAllow, "", nil
		})
		var wait sync.WaitGroup
		for _, patience := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				started := time.Now()
				_, err := forRequest(s, request()).Authorize(ctx, "update", false)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `authorizer "slow"`) || time.Since(started) != patience {
					t.Errorf("after %s of %s: %v", time.Since(started), patience, err)
				}
			})
		}
		wait.Wait()
		close(release)
		synctest.Wait()
	})
}

func TestP4_ACancelledCallerSendsNoRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, _ := chainOf(t, "asked", noObserver{}, func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		t.Error("asked")
		return authorizer.DecisionAllow, "", nil
	})
	if v, err := forRequest(s, request()).Authorize(ctx, "update", false); !errors.Is(err, context.Canceled) || v != (fieldperm.AuthorizerDecision{}) {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestP4_PanicAndErrorOfTheChainAreErrors(t *testing.T) {
	asked := map[string]int{"check error": 1, "from miss": 1, "took error": 1}
	for name, c := range map[string]struct {
		chain authorizer.AuthorizerFunc
		seen  map[string]int
	}{
		"panic": {func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("boom") }, map[string]int{"check error": 1}},
		"error with Allow": {func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", errors.New("boom")
		}, map[string]int{"check error": 1}},
		"error after a round trip": {func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			newCallMetrics().RecordWebhookEvaluation(ctx, "broken", "error")
			return authorizer.DecisionDeny, "", errors.New("boom")
		}, asked},
		"panic after a round trip": {func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			answered(ctx)
			panic("boom")
		}, asked},
	} {
		t.Run(name, func(t *testing.T) {
			var seen notes
			s, w := chainOf(t, "broken", &seen, c.chain)
			v, err := forRequest(s, request()).Authorize(t.Context(), "update", false)
			if err == nil || v != (fieldperm.AuthorizerDecision{}) || !strings.Contains(err.Error(), `"broken"`) || !strings.Contains(err.Error(), "boom") {
				t.Errorf("got %+v, %v", v, err)
			}
			seen.expect(t, "failed", c.seen)
			if n := len(w.flights) + s.cacheEntries()["broken"]; n != 0 {
				t.Errorf("%d are kept", n)
			}
		})
	}
}

func TestP8_ObserverCountsSharedAndCancelledChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var seen notes
		s, _ := chainOf(t, "slow", &seen, func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			answered(ctx)
			<-release
			return authorizer.DecisionAllow, "", nil
		})
		first, cancelFirst := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = forRequest(s, request()).Authorize(first, "update", false) })
		synctest.Wait()
		for range 3 {
			wait.Go(func() { _, _ = forRequest(s, request()).Authorize(t.Context(), "update", false) })
		}
		synctest.Wait()
		cancelFirst()
		synctest.Wait()
		seen.expect(t, "the first caller cancelled", map[string]int{"check canceled": 1, "from miss": 1})
		close(release)
		wait.Wait()
		seen.expect(t, "answered", map[string]int{"check allowed": 3, "from shared": 3})
	})
}

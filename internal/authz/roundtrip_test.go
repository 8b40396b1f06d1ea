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

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func question(name, verb string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{User: &user.DefaultInfo{Name: name}, Verb: verb, APIGroup: "apps", Resource: "deployments", ResourceRequest: true}
}

func TestP8_P7_EqualChecksAreSentOnceAndAllNameTheAuthorizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		s := newFlights(&named{name: "decider", Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			asked.Add(1)
			<-release
			return authorizer.DecisionAllow, "because", nil
		})}, time.Minute, noObserver{})
		var wait sync.WaitGroup
		for range 1000 {
			wait.Go(func() {
				if v, err := s.ask(t.Context(), question("alice", "granular:scale")); !v.allowed || v.reason != "because" || v.by != "decider" || err != nil {
					t.Errorf("got %+v, %v", v, err)
				}
			})
		}
		for _, other := range []authorizer.AttributesRecord{question("bob", "granular:scale"), question("alice", "granular:image")} {
			wait.Go(func() { _, _ = s.ask(t.Context(), other) })
		}
		synctest.Wait()
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times for 3 different questions", n)
		}
		if n := len(s.underway); n != 3 {
			t.Errorf("%d are under way", n)
		}
		close(release)
		wait.Wait()
		if n := len(s.underway); n != 0 {
			t.Errorf("%d are still under way", n)
		}
	})
}

func TestP8_ACancelledCallerDoesNotFailAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newFlights(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			select {
			case <-release:
				return authorizer.DecisionAllow, "", nil
			case <-ctx.Done():
				return authorizer.DecisionNoOpinion, "", ctx.Err()
			}
		}), time.Minute, noObserver{})
		first, cancelFirst := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if v, err := s.ask(first, question("alice", "update")); !errors.Is(err, context.Canceled) || v != (chainDecision{}) {
				t.Errorf("the cancelled caller got %v, %v", v, err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			if v, err := s.ask(t.Context(), question("alice", "update")); !v.allowed || err != nil {
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
		s := newFlights(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			<-ctx.Done()
			return authorizer.DecisionAllow, "", ctx.Err()
		}), flightTime, noObserver{})
		started := time.Now()
		if v, err := s.ask(t.Context(), question("alice", "update")); !errors.Is(err, context.DeadlineExceeded) || v != (chainDecision{}) {
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
		s := newFlights(&named{name: "slow", Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			<-release
			return authorizer.DecisionAllow, "", nil
		})}, time.Minute, noObserver{})
		var wait sync.WaitGroup
		for _, patience := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				started := time.Now()
				_, err := s.ask(ctx, question("alice", "update"))
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
	s := newFlights(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		t.Error("asked")
		return authorizer.DecisionAllow, "", nil
	}), time.Minute, noObserver{})
	if v, err := s.ask(ctx, question("alice", "update")); !errors.Is(err, context.Canceled) || v != (chainDecision{}) {
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
			newTraceMetrics().RecordWebhookEvaluation(ctx, "broken", "error")
			return authorizer.DecisionDeny, "", errors.New("boom")
		}, asked},
		"panic after a round trip": {func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			newTraceMetrics().RecordWebhookEvaluation(ctx, "broken", "success")
			panic("boom")
		}, asked},
	} {
		t.Run(name, func(t *testing.T) {
			var seen notes
			s := newFlights(&named{name: "broken", Authorizer: c.chain}, time.Minute, &seen)
			v, err := s.ask(t.Context(), question("alice", "update"))
			if err == nil || v != (chainDecision{}) || !strings.Contains(err.Error(), `"broken"`) || !strings.Contains(err.Error(), "boom") {
				t.Errorf("got %+v, %v", v, err)
			}
			seen.expect(t, "failed", c.seen)
		})
	}
}

func TestP8_ObserverCountsSharedAndCancelledChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var seen notes
		s := newFlights(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			newTraceMetrics().RecordWebhookEvaluation(ctx, "", "success")
			<-release
			return authorizer.DecisionAllow, "", nil
		}), time.Minute, &seen)
		first, cancelFirst := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = s.ask(first, question("alice", "update")) })
		synctest.Wait()
		for range 3 {
			wait.Go(func() { _, _ = s.ask(t.Context(), question("alice", "update")) })
		}
		synctest.Wait()
		cancelFirst()
		synctest.Wait()
		seen.expect(t, "the first caller cancelled", map[string]int{"check canceled": 1})
		close(release)
		wait.Wait()
		seen.expect(t, "answered", map[string]int{"check allowed": 3, "from shared": 3, "from miss": 1, "took allowed": 1})
	})
}

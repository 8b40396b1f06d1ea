package authz

import (
	"context"
	"errors"
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

func TestP8_SameQuestionAtTheSameTimeIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		a := Shared(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			asked.Add(1)
			<-release
			return authorizer.DecisionAllow, "because", nil
		}), time.Minute)
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				if d, reason, err := a.Authorize(t.Context(), question("alice", "granular:scale")); d != authorizer.DecisionAllow || reason != "because" || err != nil {
					t.Errorf("got %v, %q, %v", d, reason, err)
				}
			})
		}
		for _, other := range []authorizer.AttributesRecord{question("bob", "granular:scale"), question("alice", "granular:image")} {
			wait.Go(func() { _, _, _ = a.Authorize(t.Context(), other) })
		}
		synctest.Wait()
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times for 3 different questions", n)
		}
		close(release)
		wait.Wait()
	})
}

func TestP8_OneCallerWhoHangsUpDoesNotFailAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := Shared(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			select {
			case <-release:
				return authorizer.DecisionAllow, "", nil
			case <-ctx.Done():
				return authorizer.DecisionNoOpinion, "", ctx.Err()
			}
		}), time.Minute)
		first, hangUp := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if d, _, err := a.Authorize(first, question("alice", "update")); !errors.Is(err, context.Canceled) || d != authorizer.DecisionNoOpinion {
				t.Errorf("whoever hung up got %v, %v", d, err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			if d, _, err := a.Authorize(t.Context(), question("alice", "update")); d != authorizer.DecisionAllow || err != nil {
				t.Errorf("whoever waited got %v, %v", d, err)
			}
		})
		synctest.Wait()
		hangUp()
		synctest.Wait()
		close(release)
		wait.Wait()
	})
}

func TestP4_QuestionWithoutAnswerEndsInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := Shared(authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
			<-ctx.Done()
			return authorizer.DecisionAllow, "", ctx.Err()
		}), time.Second)
		if d, _, err := a.Authorize(t.Context(), question("alice", "update")); !errors.Is(err, context.DeadlineExceeded) || d != authorizer.DecisionNoOpinion {
			t.Errorf("got %v, %v", d, err)
		}
	})
}

func TestP4_PanicAndErrorOfTheChainAreErrors(t *testing.T) {
	for name, chain := range map[string]authorizer.AuthorizerFunc{
		"panic": func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) { panic("boom") },
		"error with Allow": func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", errors.New("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d, _, err := Shared(chain, time.Minute).Authorize(t.Context(), question("alice", "update")); err == nil || d != authorizer.DecisionNoOpinion {
				t.Errorf("got %v, %v", d, err)
			}
		})
	}
}

package authz

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/tracing"
)

// shared puts the same question to a chain once when several callers ask it at the same time. The
// question outlives the caller that happened to ask first, up to timeout, so that one user who hangs up
// does not fail another's request; each caller's context still ends that caller's own wait.
type shared struct {
	chain    authorizer.UnconditionalAuthorizer
	timeout  time.Duration
	observer Observer
	flights  singleflight.Group

	mu       sync.Mutex
	underway map[string]*trail
}

func newShared(chain authorizer.UnconditionalAuthorizer, timeout time.Duration, observer Observer) *shared {
	return &shared{chain: chain, timeout: timeout, observer: observer, underway: map[string]*trail{}}
}

// verdict is the answer to a question. The zero verdict denies.
type verdict struct {
	allowed bool
	reason  string
	// by is the name of the authorizer that decided, "" if none had an opinion.
	by string
	// failure is of an authorizer that was passed over, as its failurePolicy says, and whose opinion is
	// wanting: no other allowed it.
	failure error
	// source is where the answer is from, for whoever asked first.
	source string
}

// ask returns the zero verdict with every error.
func (s *shared) ask(ctx context.Context, a authorizer.Attributes) (verdict, error) {
	v, err := s.answer(ctx, a)
	if err != nil {
		v = verdict{}
	}
	s.observer.Check(resultOf(decisionOf(v), cmp.Or(err, v.failure)))
	return v, err
}

func (s *shared) answer(ctx context.Context, a authorizer.Attributes) (verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict{}, err
	}
	key, err := questionOf(a)
	if err != nil {
		return verdict{}, err
	}
	// Only the function of whoever asks first runs. What it sets is read after its result came.
	first := false
	flight := s.flights.DoChan(key, func() (any, error) {
		first = true
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		return s.fly(own, key, a)
	})
	select {
	case <-ctx.Done():
		return verdict{}, s.gaveUp(key, ctx.Err())
	case result := <-flight:
		v, ok := result.Val.(verdict)
		if !first {
			v.source = sourceShared
			s.observer.CheckFrom(v.source)
		}
		trace.SpanFromContext(ctx).SetAttributes(tracing.Source.String(v.source))
		if result.Err == nil && !ok {
			return verdict{}, fmt.Errorf("authorizer: answered with a %T", result.Val)
		}
		return v, result.Err
	}
}

// fly asks the chain. It turns a panic of the chain into an error: singleflight would rethrow it where
// nothing can recover, and end the process.
func (s *shared) fly(ctx context.Context, key string, a authorizer.Attributes) (v verdict, err error) {
	t := &trail{}
	s.mu.Lock()
	s.underway[key] = t
	s.mu.Unlock()
	started := time.Now()
	defer func() {
		if r := recover(); r != nil {
			v, err = verdict{}, fmt.Errorf("authorizer %q: panicked: %v", t.name(), r)
		}
		s.mu.Lock()
		delete(s.underway, key)
		s.mu.Unlock()
		failure := cmp.Or(err, v.failure)
		v.source = t.source(failure)
		if v.source == sourceMiss {
			s.observer.CheckTook(resultOf(decisionOf(v), failure), time.Since(started))
		}
		if v.source != "" {
			s.observer.CheckFrom(v.source)
		}
	}()
	decision, reason, err := s.chain.Authorize(withTrail(ctx, t), a)
	if err != nil && decision == authorizer.DecisionNoOpinion && ctx.Err() == nil {
		return verdict{failure: err}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	return verdict{allowed: decision == authorizer.DecisionAllow, reason: reason, by: t.by}, nil
}

// gaveUp says for whom a caller waited until its own time was over.
func (s *shared) gaveUp(key string, err error) error {
	s.mu.Lock()
	t := s.underway[key]
	s.mu.Unlock()
	if t == nil {
		return err
	}
	return fmt.Errorf("authorizer %q: has not answered yet: %w: see that it is up, or write a shorter timeout for it in the authorization configuration", t.name(), err)
}

func decisionOf(v verdict) authorizer.Decision {
	if v.allowed {
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}

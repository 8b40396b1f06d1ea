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

// shared asks a chain once when several callers ask the same question at the same time. The question goes on, up to timeout, when
// the first caller leaves: one client that disconnects must not fail the request of another. Each caller's context still ends that
// caller's own wait.
type shared struct {
	chain authorizer.UnconditionalAuthorizer
	// links are the chain's authorizers, which may decide a check from their caches. Without links, every check asks the chain.
	links    links
	timeout  time.Duration
	observer Observer
	flights  singleflight.Group

	mu       sync.Mutex
	underway map[string]*flight
}

// flight is a question that the chain is being asked. It is canceled when the last caller stops waiting. Otherwise callers that
// disconnect could have more questions in progress than the limit of concurrent calls allows.
type flight struct {
	trail   trail
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int // guarded by shared.mu
}

func newShared(chain authorizer.UnconditionalAuthorizer, timeout time.Duration, observer Observer) *shared {
	return &shared{chain: chain, timeout: timeout, observer: observer, underway: map[string]*flight{}}
}

// verdict is the answer to a question. The zero verdict denies.
type verdict struct {
	allowed bool
	reason  string
	// by is the name of the authorizer that decided, "" if none had an opinion.
	by string
	// failure is the error of an authorizer that failed and was skipped, as its failurePolicy says. It is set only if no other
	// authorizer allowed the request, so that the missing opinion matters.
	failure error
	// source is the source of the answer for the caller that asked first, as in Observer.CheckFrom.
	source string
}

// ask returns the answer to a question. With an error it returns the zero verdict.
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
	if c, ok := a.(*check); ok {
		if v, ok := s.links.recall(ctx, c); ok {
			s.observer.CheckFrom(v.source)
			note(ctx, v.source)
			return v, nil
		}
	}
	key, err := questionOf(a)
	if err != nil {
		return verdict{}, err
	}
	// Only the function of the first caller runs. The callers read the variables that it sets after its result has arrived.
	first := false
	s.mu.Lock()
	q := s.underway[key]
	if q == nil {
		q = &flight{}
		q.ctx, q.cancel = context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		s.underway[key] = q
	}
	q.waiting++
	answered := s.flights.DoChan(key, func() (any, error) {
		first = true
		return s.fly(q, key, a)
	})
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		s.leave(q, key)
		return verdict{}, gaveUp(&q.trail, ctx.Err())
	case result := <-answered:
		v, ok := result.Val.(verdict)
		if !first {
			v.source = sourceShared
			s.observer.CheckFrom(v.source)
		}
		note(ctx, v.source)
		if result.Err == nil && !ok {
			return verdict{}, fmt.Errorf("authorizer: answered with a %T", result.Val)
		}
		return v, result.Err
	}
}

// fly asks the chain. It turns a panic of the chain into an error: singleflight would panic again in a goroutine where nothing can
// recover, and end the process.
func (s *shared) fly(q *flight, key string, a authorizer.Attributes) (v verdict, err error) {
	ctx, t := q.ctx, &q.trail
	defer q.cancel()
	started := time.Now()
	defer func() {
		if r := recover(); r != nil {
			v, err = verdict{}, fmt.Errorf("authorizer %q: panicked: %v", t.name(), r)
		}
		s.mu.Lock()
		s.forget(q, key)
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
	if decision == authorizer.DecisionDeny && t.failed != nil {
		// The authorizer that failed might have allowed the request, so this denial is due to the failure (P4).
		if ctx.Err() != nil {
			return verdict{}, t.failed
		}
		return verdict{reason: reason, by: t.by, failure: t.failed}, nil
	}
	return verdict{allowed: decision == authorizer.DecisionAllow, reason: reason, by: t.by}, nil
}

// leave is called by a caller that stops waiting. The last one cancels the question.
func (s *shared) leave(q *flight, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		s.forget(q, key)
		q.cancel()
	}
}

// forget makes the next caller with the same question ask the chain again. The caller of forget holds the lock.
func (s *shared) forget(q *flight, key string) {
	if s.underway[key] == q {
		delete(s.underway, key)
		s.flights.Forget(key)
	}
}

// gaveUp returns the error for a caller whose context ended. It names the authorizer that had not answered.
func gaveUp(t *trail, err error) error {
	if t.name() == "" {
		return err
	}
	return fmt.Errorf("authorizer %q: has not answered yet: %w: see that it is up, or write a shorter timeout for it in the authorization configuration", t.name(), err)
}

// note records the source of the answer in the span of a check.
func note(ctx context.Context, source string) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(tracing.Source.String(source))
	}
}

func decisionOf(v verdict) authorizer.Decision {
	if v.allowed {
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}

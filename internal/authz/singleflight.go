package authz

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/tracing"
)

// flights asks a chain once when several callers ask the same question at the same time. The question goes on, up to timeout, when
// the first caller leaves: one client that disconnects must not fail the request of another. Each caller's context still ends that
// caller's own wait.
type flights struct {
	chain authorizer.UnconditionalAuthorizer
	// links are the chain's authorizers, which may decide a check from their caches. Without links, every check asks the chain.
	links links
	// conditionals are the authorizers that return conditions. They come before the chain.
	conditionals []*conditional
	timeout      time.Duration
	observer     Observer
	group        singleflight.Group

	mu       sync.Mutex
	underway map[string]*flight
}

// flight is a question that the chain is being asked. It is canceled when the last caller stops waiting. Otherwise callers that
// disconnect could have more questions in progress than the limit of concurrent calls allows.
type flight struct {
	trace   questionTrace
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int // guarded by flights.mu
}

func newFlights(chain authorizer.UnconditionalAuthorizer, timeout time.Duration, observer Observer) *flights {
	return &flights{chain: chain, timeout: timeout, observer: observer, underway: map[string]*flight{}}
}

// chainDecision is the answer to a question. The zero chainDecision denies.
type chainDecision struct {
	allowed bool
	reason  string
	// by is the name of the authorizer that decided, "" if none had an opinion.
	by string
	// skipped are the names of the webhooks that match conditions excluded, separated by commas.
	skipped string
	// failure is the error of an authorizer that failed and was skipped, as its failurePolicy says. It is set only if no other
	// authorizer allowed the request, so that the missing opinion matters.
	failure error
	// source is the source of the answer for the caller that asked first, as in Observer.CheckFrom.
	source string
}

// ask returns the answer to a question. With an error it returns the zero chainDecision.
func (f *flights) ask(ctx context.Context, a authorizer.Attributes) (chainDecision, error) {
	v, err := f.answer(ctx, a)
	if err != nil {
		v = chainDecision{}
	}
	f.observer.Check(resultOf(decisionOf(v), cmp.Or(err, v.failure)))
	return v, err
}

// askCheck is ask for a check. It allocates no memory for one that the caches decide.
func (f *flights) askCheck(ctx context.Context, c check) (chainDecision, error) {
	if ctx.Err() == nil {
		if v, ok := f.links.lookup(ctx, c); ok {
			f.observer.CheckFrom(v.source)
			note(ctx, v.source)
			f.observer.Check(resultOf(decisionOf(v), nil))
			return v, nil
		}
	}
	asked := c // Only this copy is on the heap.
	return f.ask(ctx, &asked)
}

func (f *flights) answer(ctx context.Context, a authorizer.Attributes) (chainDecision, error) {
	if err := ctx.Err(); err != nil {
		return chainDecision{}, err
	}
	key, err := questionOf(a)
	if err != nil {
		return chainDecision{}, err
	}
	// Only the function of the first caller runs. The callers read the variables that it sets after its result has arrived.
	first := false
	f.mu.Lock()
	q := f.underway[key]
	if q == nil {
		q = &flight{}
		q.ctx, q.cancel = context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
		f.underway[key] = q
	}
	q.waiting++
	answered := f.group.DoChan(key, func() (any, error) {
		first = true
		return f.fly(q, key, a)
	})
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		f.leave(q, key)
		return chainDecision{}, gaveUp(&q.trace, ctx.Err())
	case result := <-answered:
		v, ok := result.Val.(chainDecision)
		if !first {
			v.source = sourceShared
			f.observer.CheckFrom(v.source)
		}
		note(ctx, v.source)
		if result.Err == nil && !ok {
			return chainDecision{}, fmt.Errorf("authorizer: answered with a %T", result.Val)
		}
		return v, result.Err
	}
}

// fly asks the chain. It turns a panic of the chain into an error: singleflight would panic again in a goroutine where nothing can
// recover, and end the process.
func (f *flights) fly(q *flight, key string, a authorizer.Attributes) (v chainDecision, err error) {
	ctx, t := q.ctx, &q.trace
	defer q.cancel()
	started := time.Now()
	defer func() {
		if r := recover(); r != nil {
			v, err = chainDecision{}, fmt.Errorf("authorizer %q: panicked: %v", t.name(), r)
		}
		f.mu.Lock()
		f.forget(q, key)
		f.mu.Unlock()
		failure := cmp.Or(err, v.failure)
		v.source = t.source(failure)
		if v.source == sourceMiss {
			f.observer.CheckTook(resultOf(decisionOf(v), failure), time.Since(started))
		}
		if v.source != "" {
			f.observer.CheckFrom(v.source)
		}
	}()
	decision, reason, err := f.chain.Authorize(withTrace(ctx, t), a)
	if err != nil && decision == authorizer.DecisionNoOpinion && ctx.Err() == nil {
		return chainDecision{failure: err, skipped: strings.Join(t.skipped, ",")}, nil
	}
	if err != nil {
		return chainDecision{}, err
	}
	if decision == authorizer.DecisionDeny && t.failed != nil {
		// The authorizer that failed might have allowed the request, so this denial is due to the failure (P4).
		if ctx.Err() != nil {
			return chainDecision{}, t.failed
		}
		return chainDecision{reason: reason, by: t.by, failure: t.failed, skipped: strings.Join(t.skipped, ",")}, nil
	}
	return chainDecision{allowed: decision == authorizer.DecisionAllow, reason: reason, by: t.by, skipped: strings.Join(t.skipped, ",")}, nil
}

// leave is called by a caller that stops waiting. The last one cancels the question.
func (f *flights) leave(q *flight, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		f.forget(q, key)
		q.cancel()
	}
}

// forget makes the next caller with the same question ask the chain again. The caller of forget holds the lock.
func (f *flights) forget(q *flight, key string) {
	if f.underway[key] == q {
		delete(f.underway, key)
		f.group.Forget(key)
	}
}

// gaveUp returns the error for a caller whose context ended. It names the authorizer that had not answered.
func gaveUp(t *questionTrace, err error) error {
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

func decisionOf(v chainDecision) authorizer.Decision {
	if v.allowed {
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}

package authz

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/tracing"
)

// ask asks the chain, and tells the observer. With an error it returns the zero decision.
func (s *snapshot) ask(ctx context.Context, c *check) (fieldperm.AuthorizerDecision, error) {
	started := time.Now()
	out, err := s.decide(ctx, c)
	failure := cmp.Or(err, out.Failure)
	result, source := resultOf(out.Allowed(), failure), c.source(failure)
	s.observer.Check(result)
	if source != "" {
		s.observer.CheckFrom(source)
		if span := oteltrace.SpanFromContext(ctx); span.IsRecording() {
			span.SetAttributes(tracing.Source.String(source))
		}
	}
	if source == sourceMiss && result != resultCanceled {
		s.observer.CheckTook(result, time.Since(started))
	}
	return out, err
}

// decide asks the chain. What failed is an error if it denies, and data if another verb may still be allowed (P4).
func (s *snapshot) decide(ctx context.Context, c *check) (fieldperm.AuthorizerDecision, error) {
	if err := ctx.Err(); err != nil {
		return fieldperm.AuthorizerDecision{}, err
	}
	decision, reason, err := s.chain.Authorize(ctx, c)
	out := fieldperm.AuthorizerDecision{Outcome: fieldperm.Outcome(decision), Reason: reason, By: c.by, Skipped: strings.Join(c.skipped, ",")}
	switch {
	case err != nil && decision == authorizer.DecisionNoOpinion:
		out.Reason, out.Failure = "", err
	case err != nil:
		return fieldperm.AuthorizerDecision{}, err
	case decision == authorizer.DecisionDeny:
		// The authorizer that failed might have allowed the request, so this denial is due to the failure.
		out.Failure = c.failed
	}
	if out.Failure != nil && ctx.Err() != nil {
		// The end of the context makes authorizers fail.
		return fieldperm.AuthorizerDecision{}, out.Failure
	}
	return out, nil
}

// trace records the way of a check through the chain.
type trace struct {
	// by is the name of the authorizer that decided, "" if none had an opinion.
	by string
	// asked means that a webhook was asked by a round trip for this question, shared by one for an equal question. hit means that a webhook
	// answered from its cache.
	asked, shared, hit bool
	// skipped are the names of the webhooks that match conditions excluded.
	skipped []string
	// failed is the error of the first authorizer that failed and was skipped.
	failed error
}

// source returns the source of an answer, as in Observer.CheckFrom. It returns "" if the question failed before any webhook was
// asked.
func (t *trace) source(err error) string {
	switch {
	case t.asked:
		return sourceMiss
	case t.shared:
		return sourceShared
	case err != nil:
		return ""
	case t.hit:
		return sourceHit
	}
	return sourceLocal
}

// traceOf returns the trace of a check. What is recorded about another question is discarded.
func traceOf(a authorizer.Attributes) *trace {
	if c, ok := a.(*check); ok {
		return &c.trace
	}
	return &trace{}
}

// named wraps an authorizer. It records the authorizer's name in the trace and adds the name to errors.
type named struct {
	authorizer.Authorizer
	name string
}

// Authorize asks the wrapped authorizer.
func (n *named) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := authorize(ctx, n.Authorizer, a)
	t := traceOf(a)
	if decision == authorizer.DecisionAllow || decision == authorizer.DecisionDeny {
		t.by = n.name
	}
	if err != nil {
		err = fmt.Errorf("authorizer %q: %w", n.name, err)
		if decision == authorizer.DecisionNoOpinion && t.failed == nil {
			t.failed = err
		}
	}
	return decision, reason, err
}

var errPanicked = errors.New("panicked")

// authorize asks an authorizer. A panic is an error (P4): in a goroutine of its own it would end the process.
func authorize(ctx context.Context, of authorizer.UnconditionalAuthorizer, a authorizer.Attributes) (decision authorizer.Decision, reason string, err error) {
	defer func() {
		if r := recover(); r != nil {
			decision, reason, err = authorizer.DecisionDeny, "", fmt.Errorf("%w: %v", errPanicked, r)
		}
	}()
	return of.Authorize(ctx, a)
}

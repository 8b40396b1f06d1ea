package authz

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/tracing"
)

// Shared returns an authorizer that puts the same question to chain once when several callers ask it
// at the same time. The question outlives the caller that happened to ask first, up to timeout, so
// that one user who hangs up does not fail another's request; each caller's context still ends that
// caller's own wait.
func Shared(chain authorizer.UnconditionalAuthorizer, timeout time.Duration) authorizer.Authorizer {
	return newShared(chain, timeout, nil)
}

func newShared(chain authorizer.UnconditionalAuthorizer, timeout time.Duration, observer Observer) authorizer.Authorizer {
	if observer == nil {
		observer = nobody{}
	}
	s := &shared{chain: chain, timeout: timeout, observer: observer}
	return authorizer.AuthorizerFunc(s.observed)
}

type shared struct {
	chain    authorizer.UnconditionalAuthorizer
	timeout  time.Duration
	observer Observer
	flights  singleflight.Group
}

type verdict struct {
	decision authorizer.Decision
	reason   string
	// source is where the answer is from, for whoever asked first.
	source string
}

func (s *shared) observed(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := s.authorize(ctx, a)
	s.observer.Check(resultOf(decision, err))
	return decision, reason, err
}

func (s *shared) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if err := ctx.Err(); err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	key, err := questionOf(a)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	// Only the function of whoever asks first runs. What it sets is read after its result came.
	first := false
	flight := s.flights.DoChan(key, func() (any, error) {
		first = true
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		return s.ask(own, a)
	})
	select {
	case <-ctx.Done():
		return authorizer.DecisionNoOpinion, "", ctx.Err()
	case result := <-flight:
		v, ok := result.Val.(verdict)
		if !first {
			v.source = sourceShared
			s.observer.CheckFrom(v.source)
		}
		trace.SpanFromContext(ctx).SetAttributes(tracing.Source.String(v.source))
		if result.Err != nil {
			return authorizer.DecisionNoOpinion, "", result.Err
		}
		if !ok {
			return authorizer.DecisionNoOpinion, "", fmt.Errorf("authorizer: answered with a %T", result.Val)
		}
		return v.decision, v.reason, nil
	}
}

// ask turns a panic of the chain into an error: singleflight would rethrow it where nothing can
// recover, and end the process.
func (s *shared) ask(ctx context.Context, a authorizer.Attributes) (v verdict, err error) {
	ctx, asked := watched(ctx)
	started := time.Now()
	defer func() {
		if r := recover(); r != nil {
			v, err = verdict{decision: authorizer.DecisionNoOpinion}, fmt.Errorf("authorizer: panicked: %v", r)
		}
		switch {
		case asked.Load():
			v.source = sourceMiss
			s.observer.CheckTook(resultOf(v.decision, err), time.Since(started))
		case err == nil:
			v.source = sourceHit
		default:
			return
		}
		s.observer.CheckFrom(v.source)
	}()
	v.decision, v.reason, err = s.chain.Authorize(ctx, a)
	if err != nil {
		return verdict{decision: authorizer.DecisionNoOpinion}, err
	}
	return v, nil
}

// questionOf is equal for two attributes only if an authorizer cannot tell them apart.
func questionOf(a authorizer.Attributes) (string, error) {
	fields, fieldsErr := a.GetFieldSelector()
	labels, labelsErr := a.GetLabelSelector()
	if len(fields) > 0 || len(labels) > 0 || fieldsErr != nil || labelsErr != nil {
		return "", fmt.Errorf("authorizer: question about %q has selectors: ask without", a.GetResource())
	}
	u := a.GetUser()
	if u == nil {
		u = &user.DefaultInfo{}
	}
	key, err := json.Marshal([]any{
		u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra(),
		a.GetVerb(), a.IsResourceRequest(), a.GetNamespace(), a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource(), a.GetName(), a.GetPath(),
	})
	return string(key), err
}

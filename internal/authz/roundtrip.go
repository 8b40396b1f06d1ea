package authz

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// cacheSize is the maximum number of cached decisions of each webhook, the same as in k8s.io/apiserver's webhook authorizer.
	cacheSize = 8192

	// longest bounds the length of attributes, as in k8s.io/apiserver: decisions about attributes of this length or longer are not
	// cached. Users choose these texts, and could make them of any length.
	longest = 10000

	// excludedTime is the TTL of the fact that match conditions exclude a question. The fact never changes, so any value is correct.
	excludedTime = time.Hour

	// flightTime bounds the time of one round trip with its retries, whichever callers wait for it. An API server waits at most 30 s for a
	// webhook.
	flightTime = 29 * time.Second
)

// authorizerDecision is the decision of one authorizer about a question. The zero value denies.
type authorizerDecision struct {
	decision authorizer.Decision
	reason   string
	// err is set for an answer that contradicts itself, also in the cache, and if the authorizer fails to answer.
	err error
	// excluded means NoOpinion because the webhook's match conditions exclude the question.
	excluded bool
}

// flight is a question that a webhook is being asked. Equal questions at the same time share one (P8). It goes on, up to flightTime, when the
// first caller leaves: one client that disconnects must not fail the request of another. It is canceled when the last caller stops
// waiting. Otherwise callers that disconnect could have more questions in progress than the limit of concurrent calls allows.
type flight struct {
	cancel  context.CancelFunc
	waiting int // guarded by webhook.mu
	// ended is closed when the fields below are set.
	ended chan struct{}
	authorizerDecision
	call call
}

// Authorize returns the cached decision if it has not expired, and asks the webhook otherwise. It records the source of the
// decision in the check.
func (w *webhook) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	c, ok := a.(*check)
	if !ok {
		return authorizer.DecisionDeny, "", fmt.Errorf("question is a %T: ask by Chain.For", a)
	}
	d, f, first := w.begin(ctx, c)
	if f != nil {
		select {
		case <-f.ended:
		case <-ctx.Done():
			w.leave(f, c.key())
			c.asked = c.asked || first
			return authorizer.DecisionDeny, "", fmt.Errorf("has not answered yet: %w: see that it is up, or write a shorter timeout for it in the authorization configuration", ctx.Err())
		}
		if d = f.authorizerDecision; f.call.asked {
			c.asked, c.shared = c.asked || first, c.shared || !first
		}
	}
	switch {
	case d.excluded:
		c.skipped = append(c.skipped, w.name)
		if !first { // The match conditions have counted the first.
			w.metrics.RecordAuthorizationMatchConditionExclusion(ctx, "Webhook", w.name)
		}
	case f == nil:
		c.hit = true
	}
	return d.decision, d.reason, d.err
}

// begin returns the cached decision, or else a flight that the caller must wait for. first means that the caller has begun it.
func (w *webhook) begin(ctx context.Context, c *check) (known authorizerDecision, f *flight, first bool) {
	if known, ok := w.cached(c.key()); ok {
		return known, nil, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.cached(c.key()); ok {
		return known, nil, false // It has arrived just now.
	}
	f = w.flights[c.key()]
	if first = f == nil; first {
		f = &flight{ended: make(chan struct{})}
		ctx, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), flightTime)
		w.flights[c.key()] = f
		go w.fly(ctx, f, c)
	}
	f.waiting++
	return authorizerDecision{}, f, first
}

// cached returns the decision that the caches have, an exclusion too.
func (w *webhook) cached(k key) (authorizerDecision, bool) {
	v, _ := w.decisions.Get(k)
	if v == nil {
		v, _ = w.excluded.Get(k)
	}
	known, ok := v.(authorizerDecision)
	return known, ok
}

// fly asks the webhook, and caches what it decides.
func (w *webhook) fly(ctx context.Context, f *flight, c *check) {
	defer f.cancel()
	f.decision, f.reason, f.err = authorize(withCall(ctx, &f.call), w.Authorizer, uncacheable{c})
	if i := (*inconclusive)(nil); errors.As(f.err, &i) {
		f.decision = authorizer.DecisionNoOpinion
	}
	f.excluded = f.call.skipped && f.err == nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.call.answered && !errors.Is(f.err, errPanicked) || f.excluded {
		w.store(c, f.authorizerDecision)
	}
	w.forget(f, c.key())
	close(f.ended)
}

// leave is called by a caller that stops waiting. The last one cancels the question.
func (w *webhook) leave(f *flight, k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		w.forget(f, k)
		f.cancel()
	}
}

// forget makes the next caller with the same question ask again. The caller of forget holds the lock.
func (w *webhook) forget(f *flight, k key) {
	if w.flights[k] == f {
		delete(w.flights, k)
	}
}

// store caches a decision that has just arrived. An answer that both allows and denies is cached with the TTL of allowed requests. It
// returns an error each time.
func (w *webhook) store(c *check, d authorizerDecision) {
	if len(c.GetNamespace())+len(c.GetVerb())+len(c.GetAPIGroup())+len(c.GetAPIVersion())+len(c.GetResource())+len(c.GetSubresource())+len(c.GetName()) >= longest {
		return
	}
	k := c.key()
	// The verb may be a substring of a much longer text, such as the body of a request. The copy lets that text be collected.
	k.verb = strings.Clone(k.verb)
	in, ttl := w.decisions, w.unauthorizedTTL
	switch {
	case d.excluded:
		in, ttl = w.excluded, excludedTime
	case d.decision == authorizer.DecisionAllow || d.err != nil:
		ttl = w.authorizedTTL
	}
	if ttl > 0 {
		// At the end of its time a decision has expired. The cache would still return it at that moment.
		in.Add(k, d, ttl-time.Nanosecond)
	}
}

// uncacheable makes attributes too long for the cache of k8s.io/apiserver's authorizer, by a long path. A question about a resource has
// no path. Without this, that authorizer would hold memory for decisions that expire at once.
type uncacheable struct{ authorizer.Attributes }

var longPath = strings.Repeat("/", longest)

// GetPath returns the path.
func (uncacheable) GetPath() string { return longPath }

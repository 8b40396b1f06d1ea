package authz

import (
	"context"
	"errors"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Observer is told of checks, for metrics. It must not block, and is told by several at once.
type Observer interface {
	// Check is told how a check ended for whoever asked: allowed, denied, error, or canceled if that
	// one gave up.
	Check(result string)
	// CheckFrom is told where an answer is from: miss (a webhook was asked by a round trip), hit (a webhook's
	// answer to an earlier question), local (decided in process: no webhook was asked) or shared (another
	// asked the same at the time). Each question that goes through the chain is one miss, hit or local, also
	// if nobody waits for it any more.
	CheckFrom(source string)
	// CheckTook is told how long a question took that was a miss, all of the chain and retries included:
	// allowed, denied or error.
	CheckTook(result string, took time.Duration)
	// CacheEntries is given, once, a function that says how many answers the cache of each webhook holds, by
	// name.
	CacheEntries(count func() map[string]int)
}

const (
	sourceHit    = "hit"
	sourceMiss   = "miss"
	sourceShared = "shared"
	sourceLocal  = "local"
)

// nobody observes nothing.
type nobody struct{}

func (nobody) Check(string)                       {}
func (nobody) CheckFrom(string)                   {}
func (nobody) CheckTook(string, time.Duration)    {}
func (nobody) CacheEntries(func() map[string]int) {}

// resultOf is never allowed if there is an error.
func resultOf(decision authorizer.Decision, err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case err != nil:
		return "error"
	case decision == authorizer.DecisionAllow:
		return "allowed"
	}
	return "denied"
}

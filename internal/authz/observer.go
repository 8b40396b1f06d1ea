package authz

import (
	"context"
	"errors"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Observer is told of checks, for metrics. Its methods must not block, and several goroutines call them at the same time.
type Observer interface {
	// Check is called when a check ends for a caller. result is allowed, denied, error, or canceled if the caller gave up.
	Check(result string)
	// CheckFrom is called with the source of an answer: miss (a webhook was asked by a round trip), hit (a cached decision of a
	// webhook), local (decided in process, no webhook was asked) or shared (another caller asked the same question at the same
	// time). Every question that goes through the chain counts once as miss, hit or local, even if no caller waits for it any more.
	CheckFrom(source string)
	// CheckTook is called for every miss with the time that the whole chain took, retries included. result is allowed, denied or
	// error.
	CheckTook(result string, took time.Duration)
	// CacheEntries is called once, with a function that returns how many decisions the cache of each webhook holds, by the webhook's
	// name.
	CacheEntries(count func() map[string]int)
}

const (
	sourceHit    = "hit"
	sourceMiss   = "miss"
	sourceShared = "shared"
	sourceLocal  = "local"
)

// nobody is an Observer that does nothing.
type nobody struct{}

func (nobody) Check(string)                       {}
func (nobody) CheckFrom(string)                   {}
func (nobody) CheckTook(string, time.Duration)    {}
func (nobody) CacheEntries(func() map[string]int) {}

// resultOf returns the result of a check for metrics. It never returns allowed if there is an error.
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

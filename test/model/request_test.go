package model

import "fmt"

// A request of a user with the marker on one kube-apiserver, and time. Both topologies have it.
//
// ASSUMPTIONS. The results hold under these assumptions only.
//
//  1. Clocks run at the same speed. (They may show different times: the protocol measures only spans.)
//  2. An answer of /authorize that takes longer than the authorizer's timeout is not used.
//  3. A kube-apiserver keeps an Allow no longer than authorizedTTL, and loses it when it restarts.
//  4. A request reaches admission within --request-timeout of its authorization, or never.
//  5. A kube-apiserver takes the changes of one webhook configuration in their order, however late, and whatever it has seen of others. After a restart it
//     acts on the stored ones. If it goes back to an earlier version, this counts as tampering.
//  6. A kube-apiserver is known to fieldperm before it serves users.
//  7. Nonces and tokens cannot be forged, and a probe changes nothing wherever it arrives. So the model represents a
//     probe as a check of the server's behaviour at one moment of the round.
//  8. fieldperm reads the configuration as it is stored at that moment (no cache). Its watch may be late or silent.
//  9. Administrators do not remove the finalizer by hand, and loosen nothing (guard), except in variants with tampering.
//  10. The end of a kube-apiserver ends its watch before another process answers at its address.
//  11. A kube-apiserver acts on the configuration that it publishes as loaded.
//
// Requests affect each other in one place only, the cache of their kube-apiserver. So it is enough to follow one request at a time on one
// server. All servers are alike, and probes reach them in any order: so that server is number 0 (home).
//
// Limits of spans are inclusive: an action with a span of N ticks can still happen at the Nth.

// home is the kube-apiserver that receives the request.
const home = 0

// Spans in ticks. Only their order and their sums matter.
const (
	proofLife = 2 // two intervals: the life of a proof, counted from the start of its round
	inFlight  = 1 // --request-timeout
)

// spans are the spans that variants shorten.
type spans struct {
	answer int // timeout of the authorizer in the AuthorizationConfiguration
	ttl    int // authorizedTTL
}

// underWay is the time in which a write may still come after the last moment at which a proof was correct.
func (s spans) underWay() int { return proofLife + s.answer + s.ttl + inFlight }

// phase of the request.
type phase uint8

const (
	idle phase = iota
	answering
	authorized
)

func (p phase) String() string {
	switch p {
	case idle:
		return "idle"
	case answering:
		return "answering"
	case authorized:
		return "authorized"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// traffic is the part of the state that belongs to the request.
type traffic struct {
	request phase
	left    uint8 // ticks + 1 that the request or answer under way may take; 0 for none
	cache   uint8 // ticks + 1 that home keeps an Allow
	since   uint8 // ticks + 1 since enforcement was removed; 0 for never
	harm    bool  // a write passed that admission did not check, outside the window of tampering
}

// user calls do for each possible next step of the request. proven says whether a replica says Allow now; looks whether admission at home
// checks the request; window is the time after tampering in which harm is accepted.
func (t traffic) user(s spans, proven, looks bool, window int, do func(string, traffic)) {
	switch {
	case t.request == authorized:
		next := t
		next.request, next.left = idle, 0
		next.harm = !looks && (t.since == 0 || int(t.since) > window+1)
		do("has its write come to admission", next)
	case t.request == answering:
		next := t
		next.request, next.left, next.cache = authorized, inFlight+1, uint8(s.ttl+1)
		do("is authorized by the answer", next)
	default:
		if t.cache > 0 {
			next := t
			next.request, next.left = authorized, inFlight+1
			do("is authorized by the cache", next)
		}
		if proven {
			next := t
			next.request, next.left = answering, uint8(s.answer+1)
			do("asks, and /authorize answers Allow", next)
		}
	}
}

// forget is the effect of a restart of home.
func (t *traffic) forget() { t.request, t.left, t.cache = idle, 0, 0 }

// tamper starts the window.
func (t *traffic) tamper() {
	if t.since == 0 {
		t.since = 1
	}
}

// passes is one tick.
func (t *traffic) passes(window int) {
	down(&t.cache)
	down(&t.left)
	if t.left == 0 {
		t.request = idle
	}
	if t.since > 0 && int(t.since) < window+2 {
		t.since++
	}
}

func down(ticks *uint8) {
	if *ticks > 0 {
		*ticks--
	}
}

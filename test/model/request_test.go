package model

import "fmt"

// A marker holder's request on one kube-apiserver, and time. Both topologies have it.
//
// ASSUMPTIONS. What is proved here is proved under these, and no more.
//
//  1. Clocks run at the same speed. (They may show different times: only spans are measured.)
//  2. An answer of /authorize that takes longer than the authorizer's timeout is not used.
//  3. A kube-apiserver keeps an Allow no longer than authorizedTTL, and loses it when it restarts.
//  4. A request reaches admission within --request-timeout of its authorization, or never.
//  5. A kube-apiserver acts on a change of the webhook configuration in less than the settle time, and takes changes
//     in their order. After a restart it acts on what is stored.
//  6. A kube-apiserver is known to fieldperm before it serves users.
//  7. Nonces and tokens cannot be forged, and a canary changes nothing wherever it lands. So a canary is here a look
//     at what the server would do, at one moment of the round.
//  8. fieldperm reads the configuration as it is stored at that moment (no cache). Its watch may be late or silent.
//  9. Administrators do not take the finalizer away by hand, and loosen nothing (guard), but where a variant tampers.
//  10. What a kube-apiserver publishes as loaded is what it acts on.
//
// Requests meet one another in one place only, the cache of their kube-apiserver. So it is enough to follow one at a
// time on one server. Servers are alike, and canaries reach them in any order: so that server is number 0 (home).
//
// Bounds of spans are closed: what lives for N ticks can still act at the Nth.

// home is the kube-apiserver that the request is sent to.
const home = 0

// Spans in ticks. Only their order and their sums matter.
const (
	proofLife = 2 // two intervals: the life of a proof, counted from the start of its round
	inFlight  = 1 // --request-timeout
	visible   = 1 // how long a change of the configuration takes at most to reach a server
	settle    = visible + 1
)

// spans are those that variants shorten.
type spans struct {
	answer int // timeout of the authorizer in the AuthorizationConfiguration
	ttl    int // authorizedTTL
}

// underWay is how long a write may come after the last moment at which a proof was right.
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

// traffic is the part of the state that the request has.
type traffic struct {
	request phase
	left    uint8 // ticks + 1 that what is under way may take; 0 for nothing under way
	cache   uint8 // ticks + 1 that home keeps an Allow
	since   uint8 // ticks + 1 since somebody took enforcement away; 0 for never
	harm    bool  // a write landed that admission did not look at, outside the window of tampering
}

// user calls do for what the request does next. proven says whether some replica says Allow now; looks whether
// admission at home does; window is how long harm may come after tampering.
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

// forget is what a restart of home does.
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

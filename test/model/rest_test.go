package model

import (
	"fmt"
	"slices"
)

// The interlock where the webhook configuration is an object of the cluster (--webhook-configuration). README.md maps
// it to the code; request_test.go has the assumptions.

// restRules are the world's size, and the rules of the protocol that a variant lacks.
type restRules struct {
	spans
	servers, replicas int
	changes           int // of the configuration, at most
	// begun starts with a good configuration, servers that call webhooks, and replicas that do not crash.
	begun   bool
	tampers bool // somebody loosens the configuration in spite of the guard

	noFinalizer   bool // deletion takes the configuration away at once
	short         int  // ticks that the release delay lacks
	noSettle      bool // a change counts at once
	noExpiry      bool // a proof never ends
	fromTheEnd    bool // a proof's life begins with the end of its round
	noGet         bool // the configuration is not read
	noCanary      bool
	oneServer     bool // a canary goes to one server only
	closedAtStart bool
	noEpoch       bool // what opens the interlock does not reach the round under way
	lateListing   bool // a server serves users before fieldperm knows of it
	tight         int  // ticks by which the window after tampering is said to be shorter
}

func (r restRules) release() uint8 { return uint8(r.underWay() + 1 - r.short) }
func (r restRules) window() int    { return r.underWay() - r.tight }

// kind is what a version of the configuration is.
type kind uint8

const (
	none     kind = iota
	loose         // it leaves out what is asked about
	ignore        // failurePolicy Ignore
	good          //
	deleting      // good, with a deletionTimestamp and the finalizer
)

func (k kind) String() string {
	if int(k) < 5 {
		return [...]string{"none", "loose", "ignore", "good", "deleting"}[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Bounds of the world.
const (
	maxServers  = 2
	maxReplicas = 2
	maxVersions = 5
)

// rest is a state. Versions that every server has left behind are forgotten, so that states that differ by history
// alone are the same.
type rest struct {
	traffic
	// versions are those of the configuration that some server still acts on, the oldest first, up to the stored one.
	versions [maxVersions]version
	latest   uint8 // index of the stored one
	changed  uint8 // how many changes there were
	server   [maxServers]restServer
	replica  [maxReplicas]restReplica
}

type version struct {
	is  kind
	due uint8 // ticks until every server has seen it
}

type restServer struct {
	serves bool
	plugin bool  // its admission calls webhooks at all
	acts   uint8 // index of the version that it acts on
}

type restReplica struct {
	proof  uint8 // ticks + 1 until the proof is too old; 0 is open
	failed bool  // the webhook's error was seen to stop a write since it opened
	knows  memory
	// settling is how many ticks it takes until what it knows has settled.
	settling uint8
	round    restRound
	release  uint8 // ticks + 1 until it lets go; 0 is nothing to let go
}

// memory is what a replica remembers of the configuration that it last saw.
type memory uint8

const (
	current   memory = iota // the stored one, or that there was none, as now
	otherNone               // that there was none
	other                   // another one
)

func (m memory) String() string { return [...]string{"the stored one", "none", "another"}[m] }

// restRound is the round under way.
type restRound struct {
	running   bool
	age       uint8 // ticks since its start
	tried     bool  // its canaries are of mode fail
	overtaken bool  // the interlock was opened since its start, or the configuration was not settled
	read      bool
	asked     uint8 // servers, as bits: those that were listed
	enforced  uint8 // of those, that refused the canary
}

func (s *rest) stored() kind { return s.versions[s.latest].is }

// stops reports whether admission of a server refuses what /admit/granular refuses, or fails to answer.
func (s *rest) stops(server int, fails bool) bool {
	if !s.server[server].plugin {
		return false
	}
	switch s.versions[s.server[server].acts].is {
	case good, deleting:
		return true
	case ignore:
		return !fails
	default:
		return false
	}
}

// become stores another version.
func (s *rest) become(what kind, rules restRules) {
	was := s.stored()
	s.latest++
	s.changed++
	s.versions[s.latest] = version{is: what, due: visible}
	for i := range rules.replicas {
		r := &s.replica[i]
		if r.knows == current {
			r.knows = other
			if was == none {
				r.knows = otherNone
			}
		}
		if r.knows == otherNone && what == none {
			r.knows = current
		}
	}
}

// open is mustOpen: a new epoch.
func (r *restReplica) open(rules restRules) {
	r.proof, r.failed = 0, false
	if !rules.noEpoch {
		r.round.overtaken = r.round.running
	}
}

// see is Interlock.seen: another identity has to settle.
func (r *restReplica) see(rules restRules) {
	if r.knows == current {
		return
	}
	r.knows = current
	if !rules.noSettle {
		r.settling = settle
		r.round.overtaken = r.round.running
	}
	if r.proof > 0 {
		r.open(rules)
	}
}

// tidy forgets what makes no difference: history, and which replica is which.
func (s *rest) tidy(rules restRules) {
	if rules.replicas == 2 && s.replica[1].before(s.replica[0]) {
		s.replica[0], s.replica[1] = s.replica[1], s.replica[0]
	}
	oldest := s.latest
	for i := range rules.servers {
		server := &s.server[i]
		if !server.serves || !server.plugin {
			server.acts = s.latest
		}
		oldest = min(oldest, server.acts)
	}
	s.versions[oldest].due = 0
	if oldest == 0 {
		return
	}
	var versions [maxVersions]version
	copy(versions[:], s.versions[oldest:s.latest+1])
	s.versions, s.latest = versions, s.latest-oldest
	for i := range rules.servers {
		s.server[i].acts -= oldest
	}
}

// before is any order of replicas: they are alike.
func (r restReplica) before(other restReplica) bool {
	return slices.Compare(r.words(), other.words()) < 0
}

func (r restReplica) words() []uint8 {
	bits := func(flags ...bool) (all uint8) {
		for i, flag := range flags {
			if flag {
				all |= 1 << i
			}
		}
		return all
	}
	return []uint8{r.proof, uint8(r.knows), r.settling, r.release, r.round.age, r.round.asked, r.round.enforced,
		bits(r.failed, r.round.running, r.round.tried, r.round.overtaken, r.round.read)}
}

func (r restRules) harmed(s rest) bool { return s.harm }

func (r restRules) initial() []rest {
	var all []rest
	add := func(s rest) {
		for i := range r.replicas {
			if r.closedAtStart {
				s.replica[i].proof = proofLife + 1
			}
		}
		if r.begun {
			s.versions[0].is = good
		}
		all = append(all, s)
	}
	plugins := []bool{true}
	if !r.begun {
		plugins = []bool{true, false}
	}
	for _, first := range plugins {
		if r.servers == 1 {
			add(rest{server: [maxServers]restServer{{serves: true, plugin: first}}})
			continue
		}
		for _, second := range plugins {
			for _, serves := range [][2]bool{{true, true}, {true, false}, {false, true}} {
				add(rest{server: [maxServers]restServer{{serves: serves[0], plugin: first}, {serves: serves[1], plugin: second}}})
			}
		}
	}
	return all
}

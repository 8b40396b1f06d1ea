package model

import (
	"fmt"
	"slices"
)

// The enforcement proof if the webhook configuration is an object of the cluster (--webhook-configuration). README.md maps it to the code;
// request_test.go has the assumptions.

// restRules are the size of the model, and the rules of the protocol that a variant lacks.
type restRules struct {
	spans
	servers, replicas int
	changes           int // maximum number of changes of the configuration
	// begun starts with a good configuration, servers that call webhooks, and replicas that do not crash.
	begun   bool
	tampers bool // an administrator loosens the configuration in spite of the guard
	falls   bool // a server goes back to an earlier version, which counts as tampering

	noFinalizer   bool // deletion removes the configuration at once
	short         int  // ticks by which the release delay is too short
	noIdentity    bool // a probe shows that a server refuses it, and not which version the server acts on
	noExpiry      bool // a proof never ends
	fromTheEnd    bool // the validity of a proof starts at the end of its round
	noGet         bool // the configuration is not read
	noProbe       bool
	oneServer     bool // a probe goes to one server only
	provenAtStart bool
	noWatch       bool // a server that starts again counts as before
	noEpoch       bool // an event that ends the proof does not affect the round under way
	lateListing   bool // a server serves users before fieldperm knows of it
	tight         int  // ticks by which the assumed window after tampering is too short
}

func (r restRules) release() uint8 { return uint8(r.underWay() + 1 - r.short) }
func (r restRules) window() int    { return r.underWay() - r.tight }

// kind is the content of a version of the configuration.
type kind uint8

const (
	none     kind = iota
	loose         // it leaves out the resource of the request
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

// rest is a state. Versions that no server uses any more are forgotten, so that states that differ only in their history are the same.
type rest struct {
	traffic
	// versions are the versions of the configuration that a server still uses, the oldest first, up to the stored one.
	versions [maxVersions]kind
	latest   uint8 // index of the stored one
	changed  uint8 // number of changes
	server   [maxServers]restServer
	replica  [maxReplicas]restReplica
}

type restServer struct {
	serves bool
	plugin bool  // its admission calls webhooks at all
	acts   uint8 // index of the version that it uses
}

type restReplica struct {
	proof   uint8 // ticks + 1 until the proof is too old; 0 is not proven
	knows   memory
	round   restRound
	release uint8 // ticks + 1 until it releases the configuration; 0 if there is nothing to release
}

// memory is what a replica remembers of the configuration that it last saw.
type memory uint8

const (
	current   memory = iota // the stored one, or none, as now
	otherNone               // that there was none
	other                   // another one
)

func (m memory) String() string { return [...]string{"the stored one", "none", "another"}[m] }

// restRound is the round under way.
type restRound struct {
	running   bool
	age       uint8 // ticks since its start
	overtaken bool  // enforcement became not proven since its start, or another configuration was seen
	read      bool
	at        uint8 // index of the version that was read
	asked     uint8 // servers, as bits: the listed ones
	enforced  uint8 // those of them that refused the probe
}

func (s *rest) stored() kind { return s.versions[s.latest] }

// enforced reports whether a server answers the probes of a round as it must: that it acts on the version that was read, or on a later one, which has the
// same state until fieldperm writes another.
func (s *rest) enforced(server int, round restRound, rules restRules) bool {
	switch {
	case rules.noProbe:
		return true
	case rules.noIdentity:
		return s.stops(server, false)
	}
	return s.server[server].plugin && s.server[server].acts >= round.at
}

// stops reports whether admission of a server refuses a request that /admit/granular refuses, or for which it fails to answer.
func (s *rest) stops(server int, fails bool) bool {
	if !s.server[server].plugin {
		return false
	}
	switch s.versions[s.server[server].acts] {
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
	s.versions[s.latest] = what
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

// withdraw is Interlock.withdraw: it starts a new epoch.
func (r *restReplica) withdraw(rules restRules) {
	r.proof = 0
	if !rules.noEpoch {
		r.round.overtaken = r.round.running
	}
}

// see is Interlock.seenLocked: what was proven of another identity is void.
func (r *restReplica) see(rules restRules) {
	if r.knows == current {
		return
	}
	r.knows = current
	r.withdraw(rules)
}

// tidy removes differences without effect: history, and the order of replicas.
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
	if oldest == 0 || rules.falls {
		return
	}
	var versions [maxVersions]kind
	copy(versions[:], s.versions[oldest:s.latest+1])
	s.versions, s.latest = versions, s.latest-oldest
	for i := range rules.servers {
		s.server[i].acts -= oldest
	}
	for i := range rules.replicas {
		round := &s.replica[i].round
		round.at -= min(round.at, oldest) // Every server acts on it, or on a later one.
	}
}

// before is any fixed order of replicas, because they are alike.
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
	return []uint8{r.proof, uint8(r.knows), r.release, r.round.age, r.round.at, r.round.asked, r.round.enforced,
		bits(r.round.running, r.round.overtaken, r.round.read)}
}

func (r restRules) harmed(s rest) bool { return s.harm }

func (r restRules) initial() []rest {
	var all []rest
	add := func(s rest) {
		for i := range r.replicas {
			if r.provenAtStart {
				s.replica[i].proof = proofLife + 1
			}
		}
		if r.begun {
			s.versions[0] = good
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

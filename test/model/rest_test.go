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

func (r restRules) steps(from rest, do func(step, rest)) {
	emit := func(actor string, number int, action string, to rest) {
		to.tidy(r)
		do(step{actor, number, action}, to)
	}
	for i := range r.replicas {
		r.fieldperm(from, i, func(action string, to rest) { emit("fieldperm", i, action, to) })
	}
	r.administrator(from, func(action string, to rest) { emit("administrator", 0, action, to) })
	for i := range r.servers {
		r.apiserver(from, i, func(action string, to rest) { emit("kube-apiserver", i, action, to) })
	}
	if from.server[home].serves {
		proven := from.replica[0].proof > 0 || from.replica[1].proof > 0
		// Under failurePolicy Ignore nobody looks if fieldperm cannot be reached just then.
		from.user(r.spans, proven, from.stops(home, true), r.window(), func(action string, t traffic) {
			to := from
			to.traffic = t
			emit("user", 0, action, to)
		})
	}
	if to := from; to.tick(r) {
		emit("time", 0, "passes", to)
	}
}

func (r restRules) fieldperm(from rest, i int, do func(string, rest)) {
	is, at := from.stored(), from.replica[i]
	then := func(action string, next restReplica) {
		to := from
		to.replica[i] = next
		do(action, to)
	}

	switch round := at.round; {
	case !round.running:
		next := at
		next.round = restRound{running: true, tried: !at.failed, overtaken: at.settling > 0}
		then("starts a round", next)
	case !round.read:
		next := at
		next.see(r)
		if is != good && !r.noGet {
			next.open(r)
			next.round = restRound{}
			then("reads a configuration that does not do", next)
			break
		}
		next.round.read = true
		for server := range r.servers {
			if from.server[server].serves {
				next.round.asked |= 1 << server
			}
		}
		if r.oneServer {
			next.round.asked = 1 << (r.servers - 1)
		}
		then("reads the configuration, lists the servers", next)
	case round.asked != round.enforced:
		for server := range r.servers {
			if (round.asked&^round.enforced)&(1<<server) == 0 {
				continue
			}
			next := at
			if r.noCanary || from.stops(server, round.tried) {
				next.round.enforced |= 1 << server
				then(fmt.Sprintf("has its canary refused by server %d", server), next)
				continue
			}
			next.open(r)
			next.round = restRound{}
			then(fmt.Sprintf("has its canary pass on server %d", server), next)
		}
	default:
		next := at
		if !round.overtaken {
			next.failed = true
			next.proof = proofLife + 1
			if !r.fromTheEnd {
				next.proof -= min(round.age, proofLife+1)
			}
		}
		next.round = restRound{}
		then("ends the round", next)
	}

	// Its watch tells of the configuration, some time or never.
	if next := at; at.knows != current || is != good {
		next.see(r)
		if is != good {
			next.open(r)
		}
		if next != at {
			then("is told by its watch", next)
		}
	}
	if is == deleting && at.release == 0 {
		next := at
		next.release = r.release() + 1
		then("begins to wait for the release", next)
	}
	if at.release == 1 {
		to := from
		to.replica[i].release = 0
		if is == deleting && int(from.changed) < r.changes {
			to.become(none, r)
		}
		do("removes the finalizer", to)
	}
	// It may also be frozen at any time: then it does not act.
	if reset := (restReplica{knows: unknown(is)}); !r.begun && at != reset {
		if r.closedAtStart {
			reset.proof = proofLife + 1
		}
		then("crashes and starts again with nothing", reset)
	}
}

// unknown is what a replica remembers that has seen nothing yet: as much as if there had been none.
func unknown(is kind) memory {
	if is == none {
		return current
	}
	return otherNone
}

func (r restRules) administrator(from rest, do func(string, rest)) {
	if int(from.changed) >= r.changes {
		return
	}
	then := func(action string, what kind, tampers bool) {
		to := from
		if tampers {
			to.tamper()
		}
		to.become(what, r)
		do(action, to)
	}
	switch from.stored() {
	case none:
		then("makes the configuration", good, false)
	case good:
		if r.noFinalizer {
			then("deletes the configuration, which has no finalizer", none, false)
		} else {
			then("deletes the configuration", deleting, false)
		}
		if r.tampers && from.since == 0 {
			then("leaves a resource out of the configuration", loose, true)
			then("sets failurePolicy Ignore", ignore, true)
		}
	case loose, ignore:
		then("mends the configuration", good, false)
	default:
		// What is being deleted stays until the finalizer is gone.
	}
}

func (r restRules) apiserver(from rest, i int, do func(string, rest)) {
	at := from.server[i]
	if at.serves && at.acts < from.latest {
		to := from
		to.server[i].acts++
		do("sees the next version", to)
	}
	if at.serves {
		to := from
		to.server[i].acts = from.latest
		if i == home {
			to.forget()
		}
		if to != from {
			do("restarts", to)
		}
		return
	}
	// It is new, and is known before it serves users.
	to := from
	to.server[i].serves = true
	if !r.lateListing {
		for replica := range r.replicas {
			to.replica[replica].open(r)
		}
	}
	do("is new and serves", to)
}

// tick lets time go on, unless a server has yet to see an overdue version.
func (s *rest) tick(rules restRules) bool {
	for i := uint8(1); i <= s.latest; i++ {
		for server := range rules.servers {
			if s.versions[i].due == 0 && s.server[server].acts < i {
				return false
			}
		}
	}
	for i := range s.versions {
		down(&s.versions[i].due)
	}
	for i := range rules.replicas {
		r := &s.replica[i]
		if !rules.noExpiry {
			down(&r.proof)
		}
		down(&r.settling)
		if r.release > 1 {
			r.release--
		}
		if r.round.running && r.round.age <= proofLife {
			r.round.age++
		}
	}
	s.passes(rules.window())
	return true
}

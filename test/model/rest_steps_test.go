package model

import (
	"fmt"
)

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
		// Under failurePolicy Ignore the request is not checked if fieldperm cannot be reached at that moment.
		from.user(r.spans, proven, from.stops(home, true), r.window(), func(action string, t traffic) {
			to := from
			to.traffic = t
			emit("user", 0, action, to)
		})
	}
	to := from
	to.tick(r)
	emit("time", 0, "passes", to)
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
		next.round = restRound{running: true}
		then("starts a round", next)
	case !round.read:
		next := at
		if !round.overtaken {
			next.see(r)
			next.round.overtaken = false // Interlock.configured: the round is about what it has read.
		}
		next.round.at = from.latest
		if is != good && !r.noGet {
			next.withdraw(r)
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
			if from.enforced(server, round, r) {
				next.round.enforced |= 1 << server
				then(fmt.Sprintf("has its probes answered by server %d", server), next)
				continue
			}
			next.withdraw(r)
			next.round = restRound{}
			then(fmt.Sprintf("has its probes not answered by server %d", server), next)
		}
	default:
		next := at
		if !round.overtaken {
			next.proof = proofLife + 1
			if !r.fromTheEnd {
				next.proof -= min(round.age, proofLife+1)
			}
		}
		next.round = restRound{}
		then("ends the round", next)
	}

	// Its watch delivers the configuration at some time or never.
	if next := at; at.knows != current || is != good {
		next.see(r)
		if is != good {
			next.withdraw(r)
		}
		if next != at {
			then("receives a watch event", next)
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
		if r.provenAtStart {
			reset.proof = proofLife + 1
		}
		then("crashes and starts again with nothing", reset)
	}
}

// unknown is the memory of a replica that has seen no configuration yet: it is the same as after seeing none.
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
		// A configuration that is being deleted stays until the finalizer is removed.
	}
}

func (r restRules) apiserver(from rest, i int, do func(string, rest)) {
	at := from.server[i]
	if at.serves && at.acts < from.latest {
		to := from
		to.server[i].acts++
		do("sees the next version", to)
	}
	if r.falls && at.serves && at.plugin && at.acts > 0 && from.since == 0 {
		to := from
		to.tamper()
		to.server[i].acts--
		do("goes back to the version before", to)
	}
	if at.serves {
		for _, plugin := range []bool{true, false} {
			to := from
			to.server[i] = restServer{serves: true, plugin: plugin, acts: from.latest}
			if i == home {
				to.forget()
			}
			for replica := range r.replicas {
				if !r.noWatch {
					to.replica[replica].withdraw(r)
				}
			}
			if to != from {
				do(map[bool]string{true: "starts again", false: "starts again and calls no webhooks"}[plugin], to)
			}
		}
		return
	}
	// The server is new, and fieldperm knows it before it serves users.
	to := from
	to.server[i].serves = true
	if !r.lateListing {
		for replica := range r.replicas {
			to.replica[replica].withdraw(r)
		}
	}
	do("is new and serves", to)
}

// tick advances the time.
func (s *rest) tick(rules restRules) {
	for i := range rules.replicas {
		r := &s.replica[i]
		if !rules.noExpiry {
			down(&r.proof)
		}
		if r.release > 1 {
			r.release--
		}
		if r.round.running && r.round.age <= proofLife {
			r.round.age++
		}
	}
	s.passes(rules.window())
}

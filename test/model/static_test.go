package model

import "fmt"

// The enforcement proof if the webhook configuration is a static manifest. fieldperm reads the files, and compares their hash with the hash
// of the files that each kube-apiserver has loaded. In addition there are the probes of the round. README.md maps it to the code;
// request_test.go has the assumptions.
//
// Each kube-apiserver has files of its own. fieldperm reads the files of server 0. The model does not contain faults that the hash of good
// files cannot show: other tests check whether fieldperm judges a file correctly.

// staticRules are the size of the model, and the rules of the protocol that a variant lacks.
type staticRules struct {
	spans
	servers int
	reread  int // maximum age of a server's report of its loaded files at the start of a round
	edits   int // maximum number of changes of files
	tampers bool
	// remote says that the request's server is not the one whose files fieldperm reads.
	remote bool
	// blind says that a change of a file causes no event.
	blind bool

	noHash        bool // the probes of the round are enough
	hashOnce      bool // a server's report of its loaded files is valid for ever
	oneServer     bool // the hash of one server stands for all
	anyFiles      bool // the files are not checked: every file counts as good once it is loaded
	noEvent       bool // a changed file counts as proven until the next round
	noStamp       bool // a file that was changed and changed back counts as not changed
	noWatch       bool // a server that starts again counts as before
	noEpoch       bool // a change does not reach the round under way
	noExpiry      bool // a proof never ends
	provenAtStart bool
	tight         int // ticks by which the assumed window after tampering is too short
}

// window is the time after a server has loaded worse files in which harm is accepted. If fieldperm sees the file change, it gives no Allow
// any more, and earlier Allows expire. Without an event the proof has to expire first. On another host fieldperm sees nothing until it asks
// the server again, at the start of a round when the server's report is too old.
func (r staticRules) window() int {
	seen := r.answer + r.ttl + inFlight - r.tight
	switch {
	case r.remote:
		return r.reread - 1 + proofLife + seen
	case r.blind:
		return proofLife + seen
	}
	return seen
}

// content is the content of a file, and of the file that a server has loaded.
type content uint8

const (
	gone    content = iota // no manifest
	partial                // it leaves out the resource of the request, and contains that of the probes
	whole                  // it enforces
)

func (c content) String() string {
	if int(c) < 3 {
		return [...]string{"gone", "partial", "whole"}[c]
	}
	return fmt.Sprintf("content %d", uint8(c))
}

// static is a state.
type static struct {
	traffic
	edits    uint8
	worsened bool // a user has weakened the configuration
	file     [maxServers]content
	loaded   [maxServers]content
	// seen is the content that fieldperm last saw in the file of server 0. touched says that the file was written since then, even with the
	// same content: the server may have read another content in between.
	seen    content
	touched bool
	proof   uint8 // ticks + 1 until it is too old; 0 is not proven
	// said is the last report of each server about its loaded files, and its age; fresh is false if the report does not count.
	said  [maxServers]word
	round staticRound
}

type word struct {
	known bool
	is    content
	age   uint8
}

// staticRound is the round under way.
type staticRound struct {
	running   bool
	overtaken bool // enforcement became not proven since its start
	age       uint8
	probes    uint8 // servers, as bits, that refused the probe
	compared  uint8 // servers, as bits, that report the content that fieldperm saw
}

// withdraw is Interlock.withdraw: it starts a new epoch, in which no earlier report of a server counts.
func (s *static) withdraw(r staticRules) {
	s.proof = 0
	if !r.noEpoch {
		s.round.overtaken = s.round.running
	}
	if !r.hashOnce {
		s.said = [maxServers]word{}
	}
}

// look is lookAtFiles: another content makes enforcement not proven.
func (s *static) look(r staticRules) {
	if s.seen != s.file[0] || s.touched && !r.noStamp {
		s.withdraw(r)
	}
	s.seen, s.touched = s.file[0], false
}

// at is the server of the request.
func (r staticRules) at() int {
	if r.remote {
		return r.servers - 1
	}
	return 0
}

func (r staticRules) harmed(s static) bool { return s.harm }

func (r staticRules) initial() []static {
	var all []static
	add := func(contents ...content) {
		s := static{seen: contents[0]}
		copy(s.file[:], contents)
		s.loaded = s.file
		if r.provenAtStart {
			s.proof = proofLife + 1
		}
		all = append(all, s)
	}
	kinds := []content{gone, partial, whole}
	if r.tampers {
		kinds = []content{whole}
	}
	for _, first := range kinds {
		if r.servers == 1 {
			add(first)
			continue
		}
		for _, second := range kinds {
			add(first, second)
		}
	}
	return all
}

func (r staticRules) steps(from static, do func(step, static)) {
	emit := func(actor string, number int, action string, to static) { do(step{actor, number, action}, to) }
	r.fieldperm(from, func(action string, to static) { emit("fieldperm", 0, action, to) })
	for server := range r.servers {
		r.administrator(from, server, func(action string, to static) { emit("administrator", server, action, to) })
		if to := from; to.loaded[server] != to.file[server] {
			// The server reloads its file at some time. It also drops a removed manifest.
			if to.loaded[server] == whole && server == r.at() {
				to.tamper()
			}
			to.loaded[server] = to.file[server]
			emit("kube-apiserver", server, "loads its files", to)
		}
	}
	r.restarts(from, func(action string, to static) { emit("kube-apiserver", r.at(), action, to) })
	from.user(r.spans, from.proof > 0, from.loaded[r.at()] == whole, r.window(), func(action string, t traffic) {
		to := from
		to.traffic = t
		emit("user", 0, action, to)
	})
	if to := from; to.tick(r) {
		emit("time", 0, "passes", to)
	}
}

func (r staticRules) fieldperm(from static, do func(string, static)) {
	all := uint8(1)<<r.servers - 1
	switch at := from.round; {
	case !at.running:
		to := from
		to.look(r)
		to.round = staticRound{running: true}
		for i := range r.servers {
			// The report is too old: the server is asked again.
			if to.said[i].known && !r.hashOnce && int(to.said[i].age) >= r.reread {
				to.said[i] = word{}
			}
		}
		if to.seen != whole && !r.anyFiles && !r.noHash {
			to.withdraw(r)
			to.round = staticRound{}
		}
		if to != from {
			do("starts a round, and reads the files", to)
		}
	case at.probes != all:
		server := 0
		for at.probes&(1<<server) != 0 {
			server++
		}
		to := from
		if from.loaded[server] != gone {
			to.round.probes |= 1 << server
			do(fmt.Sprintf("has its probe refused by server %d", server), to)
			break
		}
		to.withdraw(r)
		to.round = staticRound{}
		do(fmt.Sprintf("has its probe pass on server %d", server), to)
	case !r.noHash && at.compared != all:
		server := 0
		for at.compared&(1<<server) != 0 {
			server++
		}
		to := from
		if !to.said[server].known {
			to.said[server] = word{known: true, is: from.loaded[server]}
		}
		if to.said[server].is != to.seen && !(r.oneServer && server > 0) {
			to.withdraw(r)
			to.round = staticRound{}
			do(fmt.Sprintf("learns that server %d has loaded something else", server), to)
			break
		}
		to.round.compared |= 1 << server
		do(fmt.Sprintf("knows that server %d has loaded the files that were read", server), to)
	default:
		to := from
		if !at.overtaken {
			to.proof = proofLife + 1 - min(at.age, proofLife+1)
		}
		to.round = staticRound{}
		do("ends the round", to)
	}
	if to := from; !r.noEvent && !r.blind {
		if to.look(r); to != from {
			do("sees that a file has changed", to)
		}
	}
	// It may also be frozen at any time: then it does not act.
	reset := from
	reset.withdraw(r)
	reset.round, reset.said, reset.seen, reset.touched = staticRound{}, [maxServers]word{}, gone, false
	if r.provenAtStart {
		reset.proof = proofLife + 1
	}
	if reset != from {
		do("crashes and starts again with nothing", reset)
	}
}

// restarts starts the server of the request again, with any file.
func (r staticRules) restarts(from static, do func(string, static)) {
	for _, loaded := range []content{gone, partial, whole} {
		to := from
		to.forget()
		to.loaded[r.at()] = loaded
		if r.remote {
			to.file[r.at()] = loaded // What that host has, fieldperm does not read.
		}
		if !r.noWatch {
			to.withdraw(r)
		}
		if to != from {
			do("starts again with a manifest that is "+loaded.String(), to)
		}
	}
}

func (r staticRules) administrator(from static, server int, do func(string, static)) {
	if int(from.edits) >= r.edits {
		return
	}
	for _, next := range []content{gone, partial, whole} {
		if next == from.file[server] {
			continue
		}
		worse := from.file[server] == whole
		// Without tampering files only improve.
		if !r.tampers && next < from.file[server] || worse && (server != r.at() || from.worsened) {
			continue
		}
		to := from
		to.file[server] = next
		to.edits++
		to.worsened = to.worsened || worse
		to.touched = to.touched || server == 0
		do("makes its manifest "+next.String(), to)
	}
}

// tick advances the time. If a change causes an event, fieldperm has read the file before: it also polls each second.
func (s *static) tick(r staticRules) bool {
	if r.tampers && !r.blind && !r.noEvent && (s.seen != s.file[0] || s.touched) {
		return false
	}
	if !r.noExpiry {
		down(&s.proof)
	}
	if s.round.running && s.round.age <= proofLife {
		s.round.age++
	}
	for i := range s.said {
		if s.said[i].known && int(s.said[i].age) < r.reread {
			s.said[i].age++
		}
	}
	s.passes(r.window())
	return true
}

package model

import "fmt"

// The interlock where the webhook configuration is a static manifest, which nobody can read: each resource has a proof
// of its own beside the round. README.md maps it to the code; request_test.go has the assumptions. Each kube-apiserver
// has a manifest of its own. It stays as it is, but where a variant tampers.

// staticRules are the world's size, and the rules of the protocol that a variant lacks.
type staticRules struct {
	spans
	servers int
	fail    int  // failInterval: how often the webhook's error is tried
	tampers bool // somebody narrows the manifest
	ignored bool // somebody sets failurePolicy Ignore instead

	noResourceProof bool // the round is enough for every resource
	denyOnly        bool // the webhook's error is never tried
	failedKept      bool // a try of it that failed is remembered as done
	noExpiry        bool // a proof never ends
	oneServer       bool // canaries go to one server only
	closedAtStart   bool
	tight           int // ticks by which the window after tampering is said to be shorter
}

// window is how long harm may come after tampering. A manifest that is narrowed is found out by the next canary,
// failurePolicy Ignore by the next of mode fail, which comes when fail ticks are over: until one tick before, canaries
// may be of mode deny.
func (r staticRules) window() int {
	if r.ignored {
		return r.fail - 1 + r.underWay() - r.tight
	}
	return r.underWay() - r.tight
}

// Two resources: that of the round's canaries (configmaps), and the one that the request is about.
const (
	round = 0
	asked = 1
)

// static is a state. Of kind, a manifest is none, ignore or good about each resource.
type static struct {
	traffic
	manifest [maxServers][2]kind
	proof    [2]staticProof // of the round, and on the resource
}

// staticProof says how far canaries have come.
type staticProof struct {
	good      uint8 // ticks + 1 until it is too old; 0 is none
	failed    uint8 // ticks until the webhook's error has to be tried again; 0 for at once
	running   bool
	tried     bool  // its canaries are of mode fail
	overtaken bool  // the interlock was opened since the start
	age       uint8 // ticks since the start
	enforced  uint8 // servers, as bits
}

func (p *staticProof) end() {
	*p = staticProof{good: p.good, failed: p.failed}
}

// open is mustOpen: a new epoch takes every proof with it.
func (s *static) open() {
	for i := range s.proof {
		p := &s.proof[i]
		p.good, p.failed, p.overtaken = 0, 0, p.running
	}
}

func (s *static) stops(server, what int, fails bool) bool {
	is := s.manifest[server][what]
	return is == good || is == ignore && !fails
}

func (s *static) closed(r staticRules) bool {
	return s.proof[round].good > 0 && (r.noResourceProof || s.proof[asked].good > 0)
}

func (r staticRules) harmed(s static) bool { return s.harm }

func (r staticRules) initial() []static {
	begin := static{}
	if r.closedAtStart {
		begin.proof[round].good, begin.proof[asked].good = proofLife+1, proofLife+1
	}
	all := []static{begin}
	kinds := []kind{good, ignore, none}
	if r.tampers || r.ignored {
		kinds = []kind{good}
	}
	for server := range r.servers {
		for what := range 2 {
			var more []static
			for _, s := range all {
				for _, is := range kinds {
					s.manifest[server][what] = is
					more = append(more, s)
				}
			}
			all = more
		}
	}
	return all
}

func (r staticRules) steps(from static, do func(step, static)) {
	for what := range 2 {
		r.canaries(from, what, func(action string, to static) { do(step{"fieldperm's proof", what, action}, to) })
	}
	crashed := from
	crashed.open()
	for what := range crashed.proof {
		crashed.proof[what].end()
		if r.closedAtStart {
			crashed.proof[what].good = proofLife + 1
		}
	}
	if crashed != from {
		do(step{"fieldperm", 0, "crashes and starts again with nothing"}, crashed)
	}
	r.administrator(from, func(action string, to static) { do(step{"administrator", 0, action}, to) })
	if to := from; to.cache > 0 || to.request != idle {
		to.forget()
		do(step{"kube-apiserver", home, "restarts"}, to)
	}
	from.user(r.spans, from.closed(r), from.stops(home, asked, true), r.window(), func(action string, t traffic) {
		to := from
		to.traffic = t
		do(step{"user", 0, action}, to)
	})
	to := from
	to.tick(r)
	do(step{"time", 0, "passes"}, to)
}

// canaries is what a proof does next.
func (r staticRules) canaries(from static, what int, do func(string, static)) {
	at := from.proof[what]
	asks := uint8(1)<<r.servers - 1
	if r.oneServer {
		asks = 1 << (r.servers - 1)
	}
	switch {
	case !at.running:
		to := from
		to.proof[what].running = true
		to.proof[what].tried = !r.denyOnly && at.failed == 0
		do("starts", to)
	case at.enforced == asks:
		to := from
		p := &to.proof[what]
		if !p.overtaken {
			p.good = proofLife + 1 - min(p.age, proofLife+1)
			if p.tried {
				p.failed = uint8(r.fail) - min(p.age, uint8(r.fail))
			}
		}
		p.end()
		do("ends", to)
	default:
		for server := range r.servers {
			if (asks&^at.enforced)&(1<<server) == 0 {
				continue
			}
			to := from
			if from.stops(server, what, at.tried) {
				to.proof[what].enforced |= 1 << server
				do(fmt.Sprintf("has its canary refused by server %d", server), to)
				continue
			}
			to.refuted(what, r)
			do(fmt.Sprintf("has its canary pass on server %d", server), to)
		}
	}
}

// refuted: a canary passed. Of the round, the interlock opens. On a resource, that one is not proven.
func (s *static) refuted(what int, r staticRules) {
	p := &s.proof[what]
	switch {
	case what == round:
		s.open()
	case !r.failedKept:
		p.good, p.failed = 0, 0
	default:
		// As if the try had gone well.
		p.good = 0
		if p.tried {
			p.failed = uint8(r.fail) - min(p.age, uint8(r.fail))
		}
	}
	p.end()
}

func (r staticRules) administrator(from static, do func(string, static)) {
	if r.ignored && from.manifest[home][asked] == good {
		to := from
		to.manifest[home][asked] = ignore
		to.tamper()
		do("sets failurePolicy Ignore", to)
	}
	if r.tampers && from.manifest[home][asked] == good {
		to := from
		to.manifest[home][asked] = none
		to.tamper()
		do("leaves the resource out of the manifest", to)
	}
	if r.tampers && from.manifest[home][round] == good {
		to := from
		to.manifest[home] = [2]kind{none, none}
		to.tamper()
		do("empties the manifest", to)
	}
}

func (s *static) tick(r staticRules) {
	for i := range s.proof {
		p := &s.proof[i]
		if !r.noExpiry {
			down(&p.good)
		}
		down(&p.failed)
		if p.running && int(p.age) <= proofLife+r.fail {
			p.age++
		}
	}
	s.passes(r.window())
}

package fieldperm

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// plan is the order of checks for a set of requirements: level by level from general to specific
// (P1), within a level first the verb that covers most (P2). It learns from answers which groups are
// covered and which have no verb left.
type plan struct {
	groups  []*group
	answers map[verbs.Verb]bool
	level   int
}

// group is the requirements that the same verbs cover.
type group struct {
	// candidates[i] is the verb at level first+i.
	candidates []verbs.Verb
	first      int
	members    []int
	covered    verbs.Verb
}

func (g *group) isCovered() bool { return !g.covered.IsZero() }

// at returns the group's verb of a level.
func (g *group) at(level int) (verbs.Verb, bool) {
	if level < g.first || level >= g.first+len(g.candidates) {
		return verbs.Verb{}, false
	}
	return g.candidates[level-g.first], true
}

// left returns how many of the group's verbs come after a level.
func (g *group) left(level int) int { return g.first + len(g.candidates) - 1 - level }

// newPlan groups those of the requirements that need a verb; indices refer to requirements.
func newPlan(requirements []Requirement, need []int) *plan {
	p := &plan{answers: map[verbs.Verb]bool{}}
	byKey := map[string]*group{}
	var b strings.Builder
	for _, i := range need {
		r := &requirements[i]
		b.Reset()
		for _, v := range r.Candidates() {
			b.WriteString(v.String())
			b.WriteByte(' ')
		}
		first := max(r.Barrier, 0)
		b.WriteByte(byte(min(first, 255)))
		g := byKey[b.String()]
		if g == nil {
			g = &group{candidates: r.Candidates(), first: first}
			byKey[b.String()] = g
			p.groups = append(p.groups, g)
		}
		g.members = append(g.members, i)
	}
	return p
}

// next returns the verbs to ask at the lowest level that has any, in order; none when all groups are
// covered or blocked.
func (p *plan) next() []verbs.Verb {
	type weight struct {
		verb           verbs.Verb
		members, fewer int
	}
	for ; ; p.level++ {
		weights := map[verbs.Verb]*weight{}
		deeper := false
		for _, g := range p.groups {
			if g.isCovered() {
				continue
			}
			deeper = deeper || g.left(p.level) > 0
			v, ok := g.at(p.level)
			if _, asked := p.answers[v]; !ok || asked {
				continue
			}
			w := weights[v]
			if w == nil {
				w = &weight{verb: v, fewer: g.left(p.level)}
				weights[v] = w
			}
			w.members += len(g.members)
			w.fewer = min(w.fewer, g.left(p.level))
		}
		if len(weights) > 0 {
			order := make([]*weight, 0, len(weights))
			for _, w := range weights {
				order = append(order, w)
			}
			slices.SortFunc(order, func(a, b *weight) int {
				return cmp.Or(cmp.Compare(b.members, a.members), cmp.Compare(a.fewer, b.fewer), strings.Compare(a.verb.String(), b.verb.String()))
			})
			out := make([]verbs.Verb, len(order))
			for i, w := range order {
				out[i] = w.verb
			}
			return out
		}
		if !deeper {
			return nil
		}
	}
}

// learn records an answer.
func (p *plan) learn(v verbs.Verb, allowed bool) {
	p.answers[v] = allowed
	if !allowed {
		return
	}
	for _, g := range p.groups {
		if !g.isCovered() && slices.Contains(g.candidates, v) {
			g.covered = v
		}
	}
}

// blocked returns the first group that has no verb left to ask, nil if there is none.
func (p *plan) blocked() *group {
	for _, g := range p.groups {
		if g.isCovered() {
			continue
		}
		open := slices.ContainsFunc(g.candidates, func(v verbs.Verb) bool { _, asked := p.answers[v]; return !asked })
		if !open {
			return g
		}
	}
	return nil
}

// uncovered returns how many requirements are not covered.
func (p *plan) uncovered() int {
	n := 0
	for _, g := range p.groups {
		if !g.isCovered() {
			n += len(g.members)
		}
	}
	return n
}

// common returns the most specific verb that would cover every group that is not covered; the zero
// verb if there is none.
func (p *plan) common() verbs.Verb {
	var shared []verbs.Verb
	first := true
	for _, g := range p.groups {
		switch {
		case g.isCovered():
		case first:
			shared, first = slices.Clone(g.candidates), false
		default:
			shared = slices.DeleteFunc(shared, func(v verbs.Verb) bool { return !slices.Contains(g.candidates, v) })
		}
	}
	if len(shared) == 0 {
		return verbs.Verb{}
	}
	return shared[len(shared)-1]
}

// needed returns those of the verbs that a group still waits for: an answer at the same level may have
// covered a group by a verb that it has further down.
func (p *plan) needed(level []verbs.Verb) []verbs.Verb {
	return slices.DeleteFunc(level, func(v verbs.Verb) bool {
		return !slices.ContainsFunc(p.groups, func(g *group) bool { return !g.isCovered() && slices.Contains(g.candidates, v) })
	})
}

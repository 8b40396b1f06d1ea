package fieldperm

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/verbs"
)

// plan is the order of the checks for a set of requirements.
//
//   - P1: level by level, from general to specific, each verb once, and only while a requirement waits for it at its level. A verb with a
//     parameter shares its level with a verb without one that follows it: container(web) covers one container, image covers all images, so
//     neither is more general.
//   - P2: within a level, the verb that covers most requirements comes first. Among equals, it is the one with the fewest verbs after it in a
//     chain, then the first by text. The answers do not change the order of their level.
//   - P3: the caller stops after Limits.MaxChecks answers. The plan reads the chains level by level, and once more for each answer, so this
//     limit bounds its cost too.
type plan struct {
	groups []group
	asked  []verbs.Verb
	// level is the next level to put in order. The others are of the level before it: uses are its verbs in open groups, order has each of
	// these verbs once, and the first done of them have been asked for or passed over.
	level int
	uses  []use
	order []candidate
	done  int
}

// group is a run of requirements that the same verbs cover.
type group struct {
	// from is the index of its first requirement; to is the index after its last.
	from, to int
	chain    []verbs.Verb
	// at is the index in chain of the first verb that is not yet in order, and level is its level.
	at, level int
	// unasked is the number of verbs in chain that have no answer.
	unasked int
	// covered is the verb that covers the group. It is zero in an open group.
	covered verbs.Verb
}

// use is a verb in the chain of a group, with the number of verbs after it.
type use struct {
	verb  verbs.Verb
	group *group
	after int
}

// candidate is a verb of a level, with the number of requirements that it would cover and the smallest number of verbs after it.
type candidate struct {
	verb           verbs.Verb
	uses           []use
	members, after int
}

// newPlan makes a plan for all requirements, or only for those with a barrier.
func newPlan(requirements []Requirement, barredOnly bool) plan {
	n := 0
	for range runs(requirements, barredOnly) {
		n++
	}
	groups := make([]group, 0, n)
	for from, to := range runs(requirements, barredOnly) {
		r := &requirements[from]
		groups = append(groups, group{from: from, to: to, chain: r.Candidates(), level: firstLevel(r), unasked: len(r.Candidates())})
	}
	return plan{groups: groups, asked: make([]verbs.Verb, 0, 4)}
}

// runs yields the requirements from one index up to another that the same verbs cover, at the same levels.
func runs(requirements []Requirement, barredOnly bool) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for to := 0; to < len(requirements); {
			r, from := &requirements[to], to
			if to++; barredOnly && !r.Barred() {
				continue
			}
			for ; to < len(requirements) && (!barredOnly || requirements[to].Barred()); to++ {
				if next := &requirements[to]; !slices.Equal(r.Candidates(), next.Candidates()) || firstLevel(r) != firstLevel(next) {
					break
				}
			}
			if !yield(from, to) {
				return
			}
		}
	}
}

// firstLevel returns the level of the first verb that counts. Levels count the whole chain, so that changes with and without a barrier ask for
// a verb at the same time.
func firstLevel(r *Requirement) int {
	level := 0
	for i := 1; i <= r.Barrier && i < len(r.Chain); i++ {
		level += below(r.Chain[i-1], r.Chain[i])
	}
	return level
}

// below returns how many levels a verb is below the verb before it in a chain: 0 if only the verb before has a parameter, else 1.
func below(before, v verbs.Verb) int {
	if before.HasParameter() && !v.HasParameter() {
		return 0
	}
	return 1
}

// open yields the groups that are not covered.
func (p *plan) open(yield func(*group) bool) {
	for i := range p.groups {
		if g := &p.groups[i]; g.covered.IsZero() && !yield(g) {
			return
		}
	}
}

// next returns the verbs to ask for in parallel, in order: at most limit, and none if no group waits for a verb. A group with two verbs at
// one level has one with a parameter and one without. They are not asked for in parallel, because one of them may be enough.
func (p *plan) next(limit int) []candidate {
	for p.done < len(p.order) || p.descend() {
		rest, n := p.order[p.done:], 0
		for n < min(limit, len(rest)) && rest[n].isAwaited() && rest[n].verb.HasParameter() == rest[0].verb.HasParameter() {
			n++
		}
		p.done += max(n, 1)
		if n > 0 {
			return rest[:n]
		}
	}
	return nil
}

func (c *candidate) isAwaited() bool {
	return slices.ContainsFunc(c.uses, func(u use) bool { return u.group.covered.IsZero() })
}

// descend puts the verbs of the next level in order (P2). It reports false after the last level.
func (p *plan) descend() bool {
	p.uses, p.order, p.done = slices.Grow(p.uses[:0], len(p.groups)), p.order[:0], 0
	for deeper := true; deeper && len(p.uses) == 0; p.level++ {
		deeper = false
		for g := range p.open {
			for g.at < len(g.chain) && g.level == p.level {
				v := g.chain[g.at]
				if g.at++; g.at < len(g.chain) {
					g.level += below(v, g.chain[g.at])
				}
				if !slices.Contains(p.asked, v) {
					p.uses = append(p.uses, use{verb: v, group: g, after: len(g.chain) - g.at})
				}
			}
			deeper = deeper || g.at < len(g.chain)
		}
	}
	slices.SortFunc(p.uses, func(a, b use) int { return strings.Compare(a.verb.String(), b.verb.String()) })
	distinct := 0
	for i, u := range p.uses {
		if i == 0 || u.verb != p.uses[i-1].verb {
			distinct++
		}
	}
	p.order = slices.Grow(p.order, distinct)
	for rest := p.uses; len(rest) > 0; {
		c, n := candidate{verb: rest[0].verb, after: rest[0].after}, 0
		for ; n < len(rest) && rest[n].verb == c.verb; n++ {
			c.members += rest[n].group.to - rest[n].group.from
			c.after = min(c.after, rest[n].after)
		}
		c.uses, rest = rest[:n], rest[n:]
		p.order = append(p.order, c)
	}
	slices.SortFunc(p.order, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.members, a.members), cmp.Compare(a.after, b.after), strings.Compare(a.verb.String(), b.verb.String()))
	})
	return len(p.order) > 0
}

// record records the answer to a verb. The zero Verb covers nothing.
func (p *plan) record(v verbs.Verb, held bool) {
	p.asked = append(p.asked, v)
	for g := range p.open {
		for _, has := range g.chain {
			if has != v {
				continue
			}
			g.unasked--
			if held {
				g.covered = v
			}
		}
	}
}

// blocked returns the first group that is not covered and has no verb left to ask for, nil if there is none.
func (p *plan) blocked() *group {
	for g := range p.open {
		if g.unasked == 0 {
			return g
		}
	}
	return nil
}

// remaining returns the number of requirements that are not covered.
func (p *plan) remaining() int {
	n := 0
	for g := range p.open {
		n += g.to - g.from
	}
	return n
}

// cheapest returns the first group that is not covered, and the most specific of its verbs that covers all such groups. If no verb does, it
// returns the most general verb of the group.
func (p *plan) cheapest() (*group, verbs.Verb) {
	var first *group
	n, has := 0, map[verbs.Verb]int{} // has counts the groups with the verb, as long as all have it.
	for g := range p.open {
		first = cmp.Or(first, g)
		for _, v := range g.chain {
			if has[v] == n {
				has[v] = n + 1
			}
		}
		n++
	}
	verb := first.chain[0]
	for _, v := range first.chain {
		if has[v] == n {
			verb = v
		}
	}
	return first, verb
}

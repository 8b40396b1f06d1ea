package fieldperm

import (
	"slices"

	"github.com/fieldperm/fieldperm/test/previous/verbs"
)

// planScratch is the memory for the plan of an ordinary request. It belongs on the stack of the caller: every request makes a plan, and no plan
// outlives its decision.
type planScratch struct {
	groups [8]group
	uses   [32]use
	verbs  [16]planned
	order  [16]verbID
}

// fewVerbs is the number of verbs up to which a linear search is faster than a map.
const fewVerbs = 32

// plan makes a plan for all requirements, or only for those with a barrier. The plan is valid as long as s is. Only this method
// appends to the plan: another method that appended would move that memory to the heap.
func (s *planScratch) plan(requirements []Requirement, barredOnly bool) plan {
	p := plan{groups: s.groups[:0], uses: s.uses[:0], verbs: s.verbs[:0], order: s.order[:0], open: none, blocked: none}
	var ids verbIDs
	var above []verbs.Verb // the chain of the last group
	for i := range requirements {
		requirement := &requirements[i]
		if barredOnly && !requirement.Barred() {
			continue
		}
		p.remaining++
		chain, level := requirement.Candidates(), firstLevel(requirement)
		id, begin := groupID(len(p.groups)), len(p.uses)
		if id > 0 && p.groups[id-1].to == int32(i) && slices.Equal(above, chain) && (len(chain) == 0 || p.uses[p.groups[id-1].begin].level == level) {
			p.groups[id-1].to++
			continue
		}
		if len(p.groups) == cap(p.groups) {
			// If there are many groups, most of the remaining ones are like this one: a chain and a verb of its own.
			more := min(len(requirements)-i, 4*len(p.groups))
			p.groups, p.uses, p.verbs = slices.Grow(p.groups, more), slices.Grow(p.uses, more*len(chain)), slices.Grow(p.verbs, more)
		}
		for j, v := range chain {
			var verb verbID
			if j < len(above) && above[j] == v {
				verb = p.uses[begin-len(above)+j].verb
			} else if verb = ids.of(v.String(), p.verbs); int(verb) == len(p.verbs) {
				p.verbs = append(p.verbs, planned{text: v.String(), parameterized: v.HasParameter(), uses: none, weighed: none})
			}
			if j > 0 {
				level += below(chain[j-1], v)
			}
			p.uses = append(p.uses, use{verb: verb, group: id, level: level, next: p.verbs[verb].uses})
			p.verbs[verb].uses = useID(begin + j)
			p.verbs[verb].waiting++
		}
		p.groups = append(p.groups, group{
			from: int32(i), to: int32(i + 1), begin: useID(begin), end: useID(len(p.uses)), at: useID(begin),
			unasked: int32(len(chain)), covered: none, next: id + 1,
		})
		p.block(id)
		above = chain
	}
	if n := len(p.groups); n > 0 {
		p.open, p.groups[n-1].next = 0, none
	}
	if len(p.verbs) > cap(p.order) {
		p.order = make([]verbID, 0, len(p.verbs))
	}
	return p
}

// sharedVerbs returns the verbs with which the chain of every requirement that counts begins, and the number of these requirements. Each of
// the verbs is the only one of its level, so a plan would ask for it next: it covers all requirements (P1, P2).
func sharedVerbs(requirements []Requirement, barredOnly bool) (shared []verbs.Verb, members int) {
	level := int32(0)
	for i := range requirements {
		r := &requirements[i]
		if barredOnly && !r.Barred() {
			continue
		}
		chain, first := r.Candidates(), firstLevel(r)
		if members++; members == 1 {
			shared, level = aloneOnLevel(chain), first
			continue
		}
		n := 0
		for first == level && n < len(shared) && n < len(chain) && shared[n] == chain[n] {
			n++
		}
		if n > 0 && n < len(chain) && below(chain[n-1], chain[n]) == 0 {
			n--
		}
		shared = shared[:n]
	}
	return shared, members
}

// aloneOnLevel returns the first verbs of a chain, each of which occurs once and shares its level with no other verb of the chain.
func aloneOnLevel(chain []verbs.Verb) []verbs.Verb {
	for i, v := range chain {
		if v.IsZero() || slices.Contains(chain[:i], v) || i+1 < len(chain) && below(v, chain[i+1]) == 0 {
			return chain[:i]
		}
	}
	return chain
}

// firstLevel returns the level of the first verb that counts. Levels count the whole chain, so that changes with and without a barrier
// ask for a verb at the same time.
func firstLevel(r *Requirement) int32 {
	level := int32(0)
	for i := 1; i <= r.Barrier && i < len(r.Chain); i++ {
		level += below(r.Chain[i-1], r.Chain[i])
	}
	return level
}

// below returns how many levels a verb is below the verb before it in a chain: 0 if only the verb before has a parameter, else 1.
func below(before, v verbs.Verb) int32 {
	if before.HasParameter() && !v.HasParameter() {
		return 0
	}
	return 1
}

// verbIDs are the IDs of a plan's verbs, by text, once there are more than fewVerbs.
type verbIDs map[string]verbID

// of returns the ID of a verb. For a verb that is not known yet it returns the next free ID.
func (ids *verbIDs) of(text string, known []planned) verbID {
	unknown := verbID(len(known))
	if len(known) <= fewVerbs {
		for i := range known {
			if known[i].text == text {
				return verbID(i)
			}
		}
		return unknown
	}
	if *ids == nil {
		*ids = make(verbIDs, 2*len(known))
		for i := range known {
			(*ids)[known[i].text] = verbID(i)
		}
	}
	if id, ok := (*ids)[text]; ok {
		return id
	}
	(*ids)[text] = unknown
	return unknown
}

package fieldperm

// plan is the order of checks for a set of requirements: level by level from general to specific (P1), and within a level first the verb
// that covers most requirements (P2). A verb with a parameter shares its level with the next verb: container(web) covers one container,
// image covers all images, so neither is more general, and P2 decides. From the answers the plan takes which groups are covered and which
// have no verb left.
//
// The plan counts and never searches. It looks at each use of a verb in a chain at most four times: when the plan is made, at the level
// of the use, when the verb is answered, and when the group is covered. So the cost of a plan is linear in the length of its chains,
// whatever the answers are.
type plan struct {
	groups []group
	// uses are the groups' chains, one after the other.
	uses  []use
	verbs []planned
	// open is the first group that may have a verb at this level or a lower one; the field next of each group leads to the next such
	// group.
	open  groupID
	level int32
	// order is a heap of the level's verbs with the next verb to ask for on top.
	order []verbID
	// remaining is the number of requirements that are not covered.
	remaining int
	// blocked is the first group that is not covered and has no verb left to ask for.
	blocked groupID
}

// group is a run of requirements that the same verbs cover.
type group struct {
	// from is the index of its first requirement; to is the index after its last.
	from, to int32
	// Its uses are uses[begin:end]. The uses before at are at levels that are already in order.
	begin, end, at useID
	// unasked is the number of its uses whose verb has no answer yet.
	unasked int32
	covered verbID
	next    groupID
}

// use is one verb in the chain of a group.
type use struct {
	verb  verbID
	group groupID
	level int32
	// next is the next use of the same verb.
	next useID
}

// planned is the state of one verb.
type planned struct {
	text          string
	parameterized bool
	asked         bool
	// uses is the first use of the verb; the field next of each use leads to the next one.
	uses useID
	// waiting is the number of its uses in groups that are not covered.
	waiting int32
	// weighed is the level for which members and fewest are valid.
	weighed int32
	// members is the number of requirements that the verb would cover.
	members int32
	// fewest is the smallest number of verbs that follow it in a chain.
	fewest int32
}

type (
	groupID int32
	verbID  int32
	useID   int32
)

// none means no group, no verb or no use.
const none = -1

func (g *group) isCovered() bool { return g.covered != none }

// next appends the verbs to ask for in parallel to into, at most limit, in order. They come from the lowest level that has any, and a
// group still waits for each of them. A group may already be covered at the same level by a verb further down its chain. If a group has
// two verbs at one level, one has a parameter and the other has none; they are not asked for in parallel, because one of them may be
// enough. next returns none when all groups are covered or blocked.
func (p *plan) next(into []verbID, limit int) []verbID {
	for p.remaining > 0 {
		for len(p.order) > 0 && len(into) < limit {
			if len(into) > 0 && p.verbs[into[0]].parameterized != p.verbs[p.order[0]].parameterized {
				break
			}
			if v := p.pop(); p.verbs[v].waiting > 0 {
				into = append(into, v)
			}
		}
		if len(into) > 0 || !p.descend() {
			break
		}
	}
	return into
}

// descend puts the verbs of the next level in order. It reports false after the last level.
func (p *plan) descend() bool {
	at := &p.open
	for *at != none {
		g := &p.groups[*at]
		if g.isCovered() || g.at >= g.end {
			*at = g.next
			continue
		}
		at = &g.next
		for ; g.at < g.end && p.uses[g.at].level == p.level; g.at++ {
			if v := p.uses[g.at].verb; !p.verbs[v].asked {
				p.weigh(v, g.to-g.from, int32(g.end-g.at)-1)
			}
		}
	}
	for i := len(p.order)/2 - 1; i >= 0; i-- {
		p.sink(i)
	}
	p.level++
	return p.open != none
}

// weigh adds a group to the weight of its verb at this level.
func (p *plan) weigh(v verbID, members, left int32) {
	w := &p.verbs[v]
	if w.weighed != p.level {
		w.weighed, w.members, w.fewest = p.level, 0, left
		p.order = p.order[:len(p.order)+1]
		p.order[len(p.order)-1] = v
	}
	w.members += members
	w.fewest = min(w.fewest, left)
}

// before reports whether verb a of the level is asked for before verb b (P2). The text decides last, so that the order is deterministic.
func (p *plan) before(a, b verbID) bool {
	v, w := &p.verbs[a], &p.verbs[b]
	switch {
	case v.members != w.members:
		return v.members > w.members
	case v.fewest != w.fewest:
		return v.fewest < w.fewest
	}
	return v.text < w.text
}

// pop removes the top verb. A heap is used, not a sort, because a review seldom asks for all verbs of a level.
func (p *plan) pop() verbID {
	top, last := p.order[0], len(p.order)-1
	p.order[0] = p.order[last]
	p.order = p.order[:last]
	p.sink(0)
	return top
}

// sink restores the heap below i.
func (p *plan) sink(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(p.order); child++ {
			if p.before(p.order[child], p.order[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		p.order[i], p.order[first] = p.order[first], p.order[i]
		i = first
	}
}

// record records the answer to a verb.
func (p *plan) record(v verbID, allowed bool) {
	p.verbs[v].asked = true
	for u := p.verbs[v].uses; u != none; u = p.uses[u].next {
		id := p.uses[u].group
		g := &p.groups[id]
		switch {
		case g.isCovered():
		case allowed && p.verbs[v].text != "":
			p.cover(g, v)
		default:
			g.unasked--
			p.block(id)
		}
	}
}

// cover marks a group as covered, so that its verbs no longer wait for it.
func (p *plan) cover(g *group, v verbID) {
	g.covered = v
	p.remaining -= int(g.to - g.from)
	for _, u := range p.uses[g.begin:g.end] {
		p.verbs[u.verb].waiting--
	}
}

// block records the group as blocked if it has no verb left.
func (p *plan) block(id groupID) {
	if p.groups[id].unasked == 0 && (p.blocked == none || id < p.blocked) {
		p.blocked = id
	}
}

// firstUncovered returns the first group that is not covered, nil if there is none.
func (p *plan) firstUncovered() *group {
	for i := range p.groups {
		if g := &p.groups[i]; !g.isCovered() {
			return g
		}
	}
	return nil
}

// common returns an index in the chain of the first uncovered group: that of the most specific verb that covers all uncovered groups. It
// returns none if there is no such verb.
func (p *plan) common() int {
	first, n := p.firstUncovered(), int32(0)
	// The plan weighs no further level, so members can now count the groups that have the verb.
	for i := range p.verbs {
		p.verbs[i].weighed, p.verbs[i].members = none, 0
	}
	for i := range p.groups {
		g := &p.groups[i]
		if g.isCovered() {
			continue
		}
		n++
		for _, u := range p.uses[g.begin:g.end] {
			// A chain may have a verb twice.
			if v := &p.verbs[u.verb]; v.weighed != int32(i) {
				v.weighed = int32(i)
				v.members++
			}
		}
	}
	for i := first.end - 1; i >= first.begin; i-- {
		if p.verbs[p.uses[i].verb].members == n {
			return int(i - first.begin)
		}
	}
	return none
}

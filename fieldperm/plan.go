package fieldperm

// plan is the order of checks for a set of requirements: level by level from general to specific
// (P1), within a level first the verb that covers most (P2). A verb with a parameter shares its level with
// the verb that follows it: container(web) is of one container, image of all, so neither is more general,
// and P2 decides. It learns from answers which groups are covered and which have no verb left.
//
// Nothing is searched for, all is counted: a use of a verb in a chain is looked at when the plan is made,
// at its level, when the verb is answered and when its group is covered, each time once. So a plan costs
// what its chains are long, whatever is asked of whom.
type plan struct {
	groups []group
	// uses are the groups' chains, one after the other.
	uses  []use
	verbs []planned
	// open is the first of the groups that may have a verb at this level or further down; their field
	// next leads from one to the other.
	open  groupID
	level int32
	// order is a heap of the level's verbs, the one to ask next on top.
	order []verbID
	// uncovered counts requirements.
	uncovered int
	// blocked is the first group that is not covered and has no verb left to ask.
	blocked groupID
}

// group is requirements in a row that the same verbs cover.
type group struct {
	// from is the index of its first requirement, to the one after its last.
	from, to int32
	// Its uses are uses[begin:end]; those before at are at levels that were put in order.
	begin, end, at useID
	// unasked counts its uses of verbs that have no answer.
	unasked int32
	covered verbID
	next    groupID
}

// use is of a verb in a group's chain.
type use struct {
	verb  verbID
	group groupID
	level int32
	// next is of the same verb elsewhere.
	next useID
}

// planned is a verb and what the plan knows of it.
type planned struct {
	text          string
	parameterized bool
	asked         bool
	// uses is the first of its uses; their field next leads from one to the other.
	uses useID
	// waiting counts its uses in groups that are not covered.
	waiting int32
	// weighed is the level for which members and fewest hold.
	weighed int32
	// members counts the requirements that it would cover.
	members int32
	// fewest is how many verbs come after it in the chain where the fewest do.
	fewest int32
}

type (
	groupID int32
	verbID  int32
	useID   int32
)

// none is no group, no verb and no use.
const none = -1

func (g *group) isCovered() bool { return g.covered != none }

// next returns the verbs to ask at the same time, at most limit of them, in order: of the lowest level
// that has any, those that a group still waits for. An answer at the same level may have covered a
// group by a verb that it has further down. Of a group's two verbs at a level, one has a parameter and the
// other has none: they are not asked at the same time, because one of them may do. It returns none when
// all groups are covered or blocked.
func (p *plan) next(into []verbID, limit int) []verbID {
	for p.uncovered > 0 {
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

// descend puts the verbs of the level in order, and goes to the next. It reports false after the last.
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

// before reports whether one verb of the level is asked before another (P2). Their texts decide last,
// so that the order is always the same.
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

// pop takes the verb on top. All of a level are seldom asked, so they are in a heap and not sorted.
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

// learn records an answer.
func (p *plan) learn(v verbID, allowed bool) {
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

// cover takes a group off the verbs that wait for it.
func (p *plan) cover(g *group, v verbID) {
	g.covered = v
	p.uncovered -= int(g.to - g.from)
	for _, u := range p.uses[g.begin:g.end] {
		p.verbs[u.verb].waiting--
	}
}

// block looks whether the group has a verb left.
func (p *plan) block(id groupID) {
	if p.groups[id].unasked == 0 && (p.blocked == none || id < p.blocked) {
		p.blocked = id
	}
}

// lacking returns the first group that is not covered, nil if there is none.
func (p *plan) lacking() *group {
	for i := range p.groups {
		if g := &p.groups[i]; !g.isCovered() {
			return g
		}
	}
	return nil
}

// common returns the index, in the chain of the first group that is not covered, of the most specific
// verb that would cover all groups that are not; none if there is no such verb.
func (p *plan) common() int {
	lacking, n := p.lacking(), int32(0)
	// No level is weighed any more, so a verb's members may count something else: the groups that have it.
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
	for i := lacking.end - 1; i >= lacking.begin; i-- {
		if p.verbs[p.uses[i].verb].members == n {
			return int(i - lacking.begin)
		}
	}
	return none
}

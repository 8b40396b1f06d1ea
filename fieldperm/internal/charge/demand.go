package charge

import (
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// demand is what a place asks of who changes it: one of the verbs of the chain, from the barrier on.
type demand struct {
	chain []verbs.Verb
	// barrier is the index in the chain of the last barrier, -1 for none.
	barrier int
	// own is how many verbs a barrier beside the permissions of a place has itself (schema.Permission.BarsOnly). It is 0 for the way to the place in a
	// tree.
	own int
}

func (d *demand) isBeside() bool { return d.own > 0 }

// strict reports whether the way through a tree must be covered by itself, so that verbs of other trees do not count. A barrier at the root
// belongs to every tree and does not make a way strict.
func (d *demand) strict() bool { return d.barrier > 0 }

// add adds a verb to the chain. If a set uncovers the verb, it is a barrier.
func (d *demand) add(v verbs.Verb, uncovered schema.VerbSet) {
	if uncovered.Has(v) {
		d.barrier = len(d.chain)
	}
	d.chain = append(d.chain, v)
}

// level is the demands of one place: first the way in the tree of the kind, then those in the trees of the other objects that the place becomes a part of
// (schema.Node.Trees) and the barriers beside, as they come.
type level struct {
	place   uint64
	demands []demand
}

func (l *level) release() {
	all := l.demands[:cap(l.demands)]
	clear(all)
	*l = level{demands: all[:0]}
}

// demands returns the demands of a place. They are valid until those of another place of the same depth are asked for.
func (c *Charger) demands(p *diff.Place) []demand {
	if p.Depth < len(c.levels) && c.levels[p.Depth].place == p.ID {
		return c.levels[p.Depth].demands
	}
	above := []demand{{barrier: -1}}
	if p.Up != nil {
		above = c.demands(p.Up)
	}
	if p.Depth >= len(c.levels) {
		c.levels = slices.Grow(c.levels, len(c.levels)+1)[:p.Depth+1]
	}
	at := &c.levels[p.Depth]
	at.place, at.demands = p.ID, c.extend(append(at.demands[:0], above...), p)
	return at.demands
}

// extend extends the demands of the place above to a place.
func (c *Charger) extend(all []demand, p *diff.Place) []demand {
	permissions, trees, uncovered := p.Node.Permissions(), p.Node.Trees(), c.UncoveredAt(p)
	begin := len(all[0].chain)
	for more := len(trees) - ways(all); more > 0; more-- {
		all = append(all, c.levels[0].demands[0]) // The other trees start at the root.
	}
	tree := 0
	for i := range all {
		if !all[i].isBeside() {
			of := permissions
			if trees != nil {
				of = trees[min(tree, len(trees)-1)]
			}
			c.extendIn(&all[i], of, uncovered, p)
			tree++
		}
	}
	for i := range all {
		switch d := &all[i]; {
		case !d.isBeside():
		case tree > 1: // Nobody knows to which tree the barrier belongs, so only its own verbs pass it.
			d.chain = d.chain[:d.own:d.own]
		default:
			d.chain = append(slices.Clip(d.chain), all[0].chain[begin:]...)
		}
	}
	for _, permission := range permissions {
		if permission.BarsOnly() {
			beside := demand{barrier: -1}
			if c.link(&beside, permission, uncovered, p); beside.barrier >= 0 {
				chain := slices.Clip(beside.chain[beside.barrier:])
				all = append(all, demand{chain: chain, own: len(chain)})
			}
		}
	}
	if c.InStatus != nil && p.InStatus && !p.Up.InStatus && c.InStatus.Has(verbs.All()) {
		// A barrier at the root that holds only in the status: its verb stands above the status in the chain.
		for i := range all {
			all[i].barrier = max(all[i].barrier, 0)
		}
	}
	return all
}

// ways returns the number of trees.
func ways(all []demand) int {
	n := 0
	for i := range all {
		if !all[i].isBeside() {
			n++
		}
	}
	return n
}

// extendIn extends the way to a place in one tree by the permissions of the place there.
func (c *Charger) extendIn(d *demand, permissions []*schema.Permission, uncovered schema.VerbSet, p *diff.Place) {
	if len(permissions) == 0 {
		return
	}
	more := 0
	for _, permission := range permissions {
		if more++; permission.ParameterName() != "" {
			more++
		}
	}
	d.chain = c.chains.withRoom(d.chain, more)
	for _, permission := range permissions {
		if !permission.BarsOnly() {
			c.link(d, permission, uncovered, p)
		}
	}
	d.chain = c.chains.keep(d.chain)
}

// link adds the verbs of one permission. The verb without its parameter covers all parameters, so it comes first. An excluded permission is
// a barrier there: no more general verb counts, whatever the parameter is.
func (c *Charger) link(d *demand, permission *schema.Permission, uncovered schema.VerbSet, p *diff.Place) {
	if permission.MayBar() && c.bars(permission, p) || permission.Bared() && uncovered.HasWith(permission.Base()) {
		d.barrier = len(d.chain)
	}
	d.add(permission.Base(), uncovered)
	if permission.ParameterName() != "" {
		if v, ok := permission.Parameterized(p.Parameter); ok {
			d.add(v, uncovered)
		}
	}
}

// Charge charges the demands of a place that changed.
func (c *Charger) Charge(p *diff.Place, op change.Operation) {
	all := c.demands(p)
	if len(all) == 1 {
		c.require(p, op, &all[0])
		return
	}
	c.chargeWays(p, op, all)
	for i := range all {
		if all[i].isBeside() {
			c.require(p, op, &all[i])
		}
	}
}

// Demands returns what Charge charges for a place, without the operation. It is valid until the next requirement.
func (c *Charger) Demands(p *diff.Place) []change.Requirement {
	begin := len(c.Out)
	c.Charge(p, "")
	found := c.Out[begin:]
	c.Out = c.Out[:begin]
	return found
}

// chargeWays charges the ways through all trees: each with a barrier by itself. Without barriers a verb of any tree is enough.
func (c *Charger) chargeWays(p *diff.Place, op change.Operation, all []demand) {
	either, isStrict := all[0], false
	for i := range all {
		if all[i].isBeside() {
			continue
		}
		if all[i].strict() {
			c.require(p, op, &all[i])
			isStrict = true
		}
		for _, v := range all[i].chain {
			if !slices.Contains(either.chain, v) {
				either.chain = append(slices.Clip(either.chain), v)
			}
		}
	}
	if !isStrict {
		c.require(p, op, &either)
	}
}

func (c *Charger) require(p *diff.Place, op change.Operation, d *demand) {
	if len(c.Out) == cap(c.Out) {
		// Most parts that wait will be charged too.
		c.Out = slices.Grow(c.Out, max(len(c.Out), p.Waiting(), 1))
	}
	c.Out = append(c.Out, change.Requirement{Path: p.Path, Operation: op, Chain: d.chain, Barrier: d.barrier})
}

// Barred reports whether any barrier holds for a place.
func (c *Charger) Barred(p *diff.Place) bool {
	return slices.ContainsFunc(c.demands(p), func(d demand) bool { return d.barrier >= 0 })
}

// guards reports whether a place has a barrier of its own, which the place above has not.
func (c *Charger) guards(p *diff.Place) bool {
	all, above := c.demands(p), c.demands(p.Up)
	for i := range all {
		d, was := &all[i], 0
		if i < len(above) {
			was = above[i].barrier
		} else if d.isBeside() {
			return true
		}
		if d.barrier > was {
			return true
		}
	}
	return false
}

// chains is memory for chains, which are never changed. It is freed when no requirement refers to it any more.
type chains []verbs.Verb

// These are the numbers of verbs of the first block and of the largest.
const (
	smallestChains = 8
	largestChains  = 64
)

// withRoom returns a copy of a chain with room for more verbs.
func (c *chains) withRoom(chain []verbs.Verb, more int) []verbs.Verb {
	n := len(chain) + more
	if cap(*c)-len(*c) < n {
		*c = make([]verbs.Verb, 0, max(n, min(max(2*cap(*c), smallestChains), largestChains)))
	}
	used := len(*c)
	return append((*c)[used:used:used+n], chain...)
}

// keep keeps the chain that withRoom returned, with the verbs that were added to it.
func (c *chains) keep(chain []verbs.Verb) []verbs.Verb {
	*c = (*c)[:len(*c)+len(chain)]
	return slices.Clip(chain)
}

package charge

import (
	"context"
	"slices"
	"sync"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// Charger is the comparison of two objects of a kind, and what its changes require.
type Charger struct {
	diff.Differ
	// Out are the requirements so far.
	Out []change.Requirement
	// Parts means that the changed scalars in a value that is charged as a whole are requirements too, with the verbs of the whole.
	Parts bool
	// Planted: see diff.Apart.
	Planted bool
	// Uncovered are the barriers of sets that hold now, InStatus those in the status if they differ, and all those that ever hold.
	Uncovered, InStatus, all schema.VerbSet
	// isOwning is true while owners are compared. The value then changes in a later request, the next apply of its owner. So a
	// conditional barrier holds always.
	isOwning bool
	// whole means that the object is charged as a whole, because it is irregular.
	whole bool
	// levels are the demands of the last places, by their depth.
	levels []level
	chains chains
}

// New returns the comparison of two objects of a kind. old is absent on CREATE. uncovered are the verbs that are barriers for this
// request, besides the barriers of the schema. The caller releases the comparison when it no longer needs it.
func New(ctx context.Context, kind *schema.Kind, uncovered schema.VerbSet, old, new rawjson.Value) *Charger {
	c, _ := chargers.Get().(*Charger)
	c.all = uncovered
	c.Start(ctx, kind, old, new)
	c.enforceForValues()
	return c
}

// chargers pools released comparisons, which have nothing but memory.
var chargers = sync.Pool{New: func() any { return &Charger{} }}

// mostKept is the capacity of the largest lists that the pool keeps.
const mostKept = 128

// Release gives the memory of the comparison back. The requirements stay valid.
func (c *Charger) Release() {
	out, levels := c.Out[:cap(c.Out)], c.levels[:cap(c.levels)]
	if len(out) > mostKept || len(levels) > mostKept {
		return
	}
	clear(out)
	for i := range levels {
		levels[i].release()
	}
	c.End()
	*c = Charger{Differ: c.Differ, Out: out[:0], levels: levels[:0]}
	chargers.Put(c)
}

// Compare charges every changed value. It leaves changed owners to the caller.
func (c *Charger) Compare() {
	c.Deep = c.Deep || c.Parts
	c.Differ.Compare(c.take)
}

// take charges a change. Inside a value that is charged as a whole, only what has a barrier of its own is charged (D2, D4). What the API server derives
// from another field is free, unless a barrier holds (D13).
func (c *Charger) take(found diff.Change) {
	p := found.Place
	switch {
	case p.Derived && !c.Barred(p):
	case p.Whole == nil:
		c.Charge(p, found.Operation)
	default:
		if c.guards(p) {
			c.Charge(p, found.Operation)
		}
		if found.Part && c.Parts {
			c.require(p, found.Operation, &c.demands(p.Whole)[0])
		}
	}
}

// Within returns what is charged inside a value that is removed.
func (c *Charger) Within(p *diff.Place, was rawjson.Value) []change.Requirement {
	begin := len(c.Out)
	c.Inside(p, was, rawjson.Value{}, c.take)
	found := slices.Clone(c.Out[begin:])
	c.Out = c.Out[:begin]
	return found
}

// Finish returns the requirements, or the error that ended the comparison.
func (c *Charger) Finish() ([]change.Requirement, error) {
	c.Look()
	if c.Err != nil {
		return nil, c.Err
	}
	if !c.whole {
		c.chargeUnseen()
		c.chargePlanted()
		c.chargeHidden()
	}
	if c.Create {
		return append([]change.Requirement{c.existence()}, c.Out...), nil
	}
	if len(c.Out) == 0 {
		return nil, nil
	}
	if out := c.Out; cap(out) > mostKept { // The pool does not keep such a list, so it needs no copy.
		c.Out = nil
		return out, nil
	}
	return slices.Clone(c.Out), nil
}

// existence returns the requirement of a new object, whatever fields it has (C5).
func (c *Charger) existence() change.Requirement {
	root := c.demands(c.Root)[0]
	root.chain = slices.Clip(root.chain)
	root.add(verbs.Creation(), c.Uncovered)
	return change.Requirement{Path: c.Root.Path, Operation: change.Created, Chain: root.chain, Barrier: root.barrier}
}

package charge

import (
	"cmp"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/verbs"
)

// requireAlone requires verbs whose place is not known, each by itself.
func (c *Charger) requireAlone(op change.Operation, barriers []verbs.Verb) {
	for _, v := range barriers {
		c.Out = append(c.Out, change.Requirement{Operation: op, Chain: []verbs.Verb{v}, Barrier: 0})
	}
}

// ChargeIrregular charges the whole object, with each barrier of the kind and of the sets, if an object is irregular and the two differ (D10). It reports
// whether an object is irregular.
func (c *Charger) ChargeIrregular() bool {
	if !c.Irregular() {
		return false
	}
	if !c.Same.Equal(c.Old, c.New) {
		c.chargeWhole()
	}
	return true
}

func (c *Charger) chargeWhole() {
	c.whole = true
	op := diff.OperationOf(c.Old, c.New)
	c.Charge(c.Root, op)
	barriers := c.Kind.Root.BarredWithin(c.all)
	if c.all.Has(verbs.All()) {
		barriers = append(barriers, verbs.All())
	}
	for _, v := range c.Kind.HiddenBarriers(c.all) {
		if !slices.Contains(barriers, v) {
			barriers = append(barriers, v)
		}
	}
	c.requireAlone(op, barriers)
	for i := range c.Out {
		c.Out[i].Instead = "a name in the object occurs twice, or differs from another one in case only: leave out one of the two"
	}
}

// chargeUnseen charges the object as a whole if the API server raised its generation for no change that the review shows. It also charges
// the barriers of every value, because each may have changed (D10).
func (c *Charger) chargeUnseen() {
	// A lossy version is charged as a whole in any case.
	if c.Kind.Lossy() || !c.ChangesUnseen() {
		return
	}
	begin := len(c.Out)
	c.Charge(c.Root, change.Modified)
	// The values of the review say nothing about the values behind them, so a conditional barrier holds always, and no part is known to have changed.
	c.isOwning, c.Parts = true, false
	c.forget()
	c.Contents(c.take)
	for i := begin; i < len(c.Out); i++ {
		c.Out[i].Operation, c.Out[i].Instead = change.Modified, "the API server sees a change that the review does not show: send the object as JSON; if you did, JSON drops what another client stored: then a user who may do so writes any field of the specification once"
	}
}

// chargePlanted charges the object as a whole if the write adds bytes that are not UTF-8.
func (c *Charger) chargePlanted() {
	if !c.Planted {
		return
	}
	c.Charge(c.Root, change.Modified)
	c.Out[len(c.Out)-1].Instead = "the object gets a string that is not UTF-8, which JSON does not show: send UTF-8"
}

// chargeHidden charges what a write through a version may change without showing it (C3). For a lossy version it charges the root and each
// barrier of the kind, even if nothing changed. In another version every change is charged with the barriers that the version cannot place. A
// creation is charged as well, because it may set a field that another version guards.
func (c *Charger) chargeHidden() {
	kind := c.Kind
	switch {
	case kind.Lossy():
		c.Charge(c.Root, change.Modified)
	case len(c.Out) == 0 && !c.Create:
		return
	}
	uncovered := c.all.ForStatusValues()
	if slices.ContainsFunc(c.Out, func(r change.Requirement) bool { return r.Operation == change.Ownership }) {
		uncovered = c.all
	}
	c.requireAlone(change.Modified, kind.HiddenBarriers(uncovered))
	if inStatus := c.all.ForStatusValues(); kind.Lossy() && inStatus.Has(verbs.All()) && !c.Uncovered.Has(verbs.All()) {
		// Of a barrier at the root that holds in the status, the root above knows nothing.
		c.requireAlone(change.Modified, []verbs.Verb{verbs.All()})
	}
	for i := range c.Out {
		if c.Out[i].Path.IsRoot() {
			c.Out[i].Instead = cmp.Or(c.Out[i].Instead, kind.Instead())
		}
	}
}

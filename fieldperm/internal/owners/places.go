package owners

import (
	"strconv"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// places charges places whose owners change, each once.
type places struct {
	d *charge.Charger
	// charged are the places that are charged, without a value, and the values of places in which each barrier is charged.
	charged map[within]bool
	digests fieldpath.Digests
	// barriers: every barrier of the kind is charged.
	barriers bool
}

// within is what a place demands, as a text, and a value in it, absent for the place itself. The barriers inside a value depend on both.
type within struct {
	demands string
	value   rawjson.Value
}

// isNew reports whether the demands of a place, or the barriers in a value there, were not charged before. Thousands of managers may come to own
// one large value, and it is walked once.
func (c *places) isNew(value rawjson.Value, demands ...change.Requirement) bool {
	var text []byte
	for i := range demands {
		text = c.digests.Append(text, demands[i].Path)
		for _, v := range demands[i].Chain {
			text = append(append(text, ' '), v.String()...)
		}
		text = strconv.AppendInt(append(text, ' '), int64(demands[i].Barrier), 10)
	}
	at := within{string(text), value}
	isNew := !c.charged[at]
	c.charged[at] = true
	return isNew
}

// each charges every path that is not free. The owner of a thing decides about what is in it, so the barriers there are charged as well.
func (c *places) each(of *smdpath.Set, free func(smdpath.Path) bool) {
	for p := range paths(of) {
		if c.d.Stops() {
			return
		}
		if !free(p) {
			c.chargePlace(p, c.d.Resolve(p))
		}
	}
}

// chargePlace charges the place of a path and the barriers in it. An item whose keys have no owner is removed, even if managers own the rest
// of the item, so a key is charged with its item.
func (c *places) chargePlace(p smdpath.Path, r diff.Resolved) {
	c.charge(r.Place)
	if r.KeyField {
		r = c.d.Resolve(r.Owner(p))
		c.charge(r.Place)
	}
	c.chargeWithin(r.Place, r.Old)
}

func (c *places) charge(p *diff.Place) { c.require(c.d.Demands(p)) }

// require charges requirements, each once.
func (c *places) require(found []change.Requirement) {
	for _, r := range found {
		r.Operation = change.Ownership
		if c.isNew(rawjson.Value{}, r) {
			c.d.Out = append(c.d.Out, r)
		}
	}
}

// chargeWithin charges the barriers inside a value that is charged as a whole, as if the value vanished.
func (c *places) chargeWithin(p *diff.Place, was rawjson.Value) {
	if was.IsAbsent() || was.IsScalar() || !c.d.LooksInside(p) || !c.isNew(was, c.d.Demands(p)...) {
		return
	}
	c.require(c.d.Within(p, was))
}

// chargeBarriersAt charges the barriers at and in a place.
func (c *places) chargeBarriersAt(p *diff.Place, values ...rawjson.Value) {
	if c.d.Barred(p) {
		c.charge(p)
	}
	for _, v := range values {
		c.chargeWithin(p, v)
	}
}

// chargeBarriersOf charges the barriers at and in the places of a set that do not change.
func (c *places) chargeBarriersOf(of *smdpath.Set) {
	for p := range paths(of) {
		if c.d.Stops() {
			return
		}
		if r := c.d.Resolve(p); !r.Changed {
			c.chargeBarriersAt(r.Place, r.Old)
		}
	}
}

// chargeObject charges the whole object and every barrier of the kind, because a guarded field may not exist yet. entry names the entry that
// is the reason, "" if there is no single one.
func (c *places) chargeObject(entry string) {
	charged := len(c.d.Out)
	c.charge(c.d.Root)
	if !c.barriers {
		c.barriers = true
		c.chargeVerbs(c.d.Kind.Root.BarredWithin(c.d.Uncovered))
		if c.d.InStatus != nil {
			status := c.d.Follow(c.d.Kind, rawjson.Value{}, statusOf).Place
			if c.d.Barred(status) {
				c.charge(status)
			}
			c.chargeVerbs(status.Node.BarredWithin(c.d.InStatus))
		}
	}
	for i := range c.d.Out[charged:] {
		c.d.Out[charged+i].Entry = entry
	}
}

var statusOf, managedFieldsOf = smdpath.MakePathOrDie("status"), smdpath.MakePathOrDie("metadata", "managedFields")

// chargeVerbs charges barriers whose place is not known.
func (c *places) chargeVerbs(barriers []verbs.Verb) {
	for _, v := range barriers {
		c.require([]change.Requirement{{Chain: []verbs.Verb{v}}})
	}
}

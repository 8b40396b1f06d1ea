package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/walk"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// places charges places whose owners change, each once.
type places struct {
	d *walk.Differ
	// charged are the places that are charged, without a value, and the values of places in which each barrier is charged.
	charged map[within]bool
	digests fieldpath.Digests
	// barriers: every barrier of the kind is charged.
	barriers bool
}

// within is a place, as a text, and a value in it, absent for the place itself. The barriers inside a value depend on both.
type within struct {
	place string
	value rawjson.Value
}

// isNew reports whether a place, or the barriers in a value there, were not charged before. Thousands of managers may come to own one large
// value, and it is walked once.
func (c *places) isNew(s *walk.Scope, value rawjson.Value) bool {
	at := within{string(s.AppendIdentity(nil, &c.digests)), value}
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
func (c *places) chargePlace(p smdpath.Path, r walk.Resolved) {
	c.charge(r.Scope)
	if r.KeyField {
		r = c.d.Resolve(r.Owner(p))
		c.charge(r.Scope)
	}
	c.chargeWithin(r.Scope, r.Old)
}

func (c *places) charge(s walk.Scope) {
	if c.isNew(&s, rawjson.Value{}) {
		c.d.Charge(s, change.Ownership)
	}
}

// chargeWithin charges the barriers inside a value that is charged as a whole, as if the value vanished.
func (c *places) chargeWithin(s walk.Scope, was rawjson.Value) {
	if was.IsAbsent() || was.IsScalar() || !c.d.MayBarWithin(s) || !c.isNew(&s, was) {
		return
	}
	found := c.d.Within(s, was)
	for i := range found {
		c.charge(walk.ScopeOf(&found[i]))
	}
}

// chargeBarriersAt charges the barriers at and in a place.
func (c *places) chargeBarriersAt(s walk.Scope, values ...rawjson.Value) {
	if s.Barred() {
		c.charge(s)
	}
	for _, v := range values {
		c.chargeWithin(s, v)
	}
}

// chargeBarriersOf charges the barriers at and in the places of a set that do not change.
func (c *places) chargeBarriersOf(of *smdpath.Set) {
	for p := range paths(of) {
		if c.d.Stops() {
			return
		}
		if r := c.d.Resolve(p); !r.Changed {
			c.chargeBarriersAt(r.Scope, r.Old)
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
		if status := c.d.Follow(c.d.Kind, rawjson.Value{}, statusOf).Scope; status.InStatus {
			if status.Barred() {
				c.charge(status)
			}
			c.chargeVerbs(status.Node.BarredWithin(c.d.InStatus))
		}
	}
	for i := range c.d.Out[charged:] {
		c.d.Out[charged+i].Entry = entry
	}
}

var statusOf = smdpath.MakePathOrDie("status")

// chargeVerbs charges barriers whose place is not known.
func (c *places) chargeVerbs(barriers []verbs.Verb) {
	for _, v := range barriers {
		c.charge(walk.ScopeOf(&change.Requirement{Chain: []verbs.Verb{v}}))
	}
}

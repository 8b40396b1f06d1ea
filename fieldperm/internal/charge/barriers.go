package charge

import (
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// enforce puts barriers of sets into force: those of the whole object, and those in the status, nil if they are the same.
func (c *Charger) enforce(uncovered, inStatus schema.VerbSet) {
	c.Uncovered, c.InStatus = uncovered, inStatus
	c.Deep = c.Parts || len(uncovered) > 0 || len(inStatus) > 0
	c.forget()
}

// forget forgets the demands of places, because other barriers hold.
func (c *Charger) forget() {
	for i := range c.levels {
		c.levels[i].place = 0
	}
}

// enforceForValues puts into force the barriers that hold for changes of values.
func (c *Charger) enforceForValues() {
	values, inStatus := c.all.ForValues(), c.all.ForStatusValues()
	if len(inStatus) == len(values) {
		inStatus = nil
	}
	c.enforce(values, inStatus)
}

// StartOwning puts into force the barriers that hold for changes of owners.
func (c *Charger) StartOwning() {
	c.isOwning = true
	if len(c.Uncovered) != len(c.all) {
		c.enforce(c.all.ForOwners(), c.all)
		return
	}
	c.forget()
}

// StopOwning ends the state that StartOwning began. It is called when no manager gained anything by which a later apply could change a value.
func (c *Charger) StopOwning() {
	c.isOwning = false
	if c.InStatus != nil {
		c.enforceForValues()
		return
	}
	c.forget()
}

// UncoveredAt returns the barriers of sets that hold at a place now.
func (c *Charger) UncoveredAt(p *diff.Place) schema.VerbSet {
	if c.InStatus != nil && p.InStatus {
		return c.InStatus
	}
	return c.Uncovered
}

// bars reports whether a permission is a barrier for the change of a place.
func (c *Charger) bars(permission *schema.Permission, p *diff.Place) bool {
	if !permission.Conditional() {
		return permission.MayBar()
	}
	// Programs read a null as absent, or as the zero of its type.
	if c.isOwning || c.Err != nil || p.New.Kind() == rawjson.Null {
		return true
	}
	old, new := rawjson.Native(p.Old, nil), rawjson.Native(p.New, nil)
	holds := permission.Bars(c.Context(), old, new)
	if _, last := p.Path.Cut(); last.Kind == fieldpath.StepField && !c.Kind.ShownInFull() { // An API server leaves out most zeros of its own kinds.
		switch {
		case p.New.IsAbsent():
			holds = holds || permission.Bars(c.Context(), old, zeroLike(old))
		case p.Old.IsAbsent() && !c.Create:
			holds = holds || permission.Bars(c.Context(), zeroLike(new), new)
		}
	}
	c.Look()
	return holds
}

// zeroLike returns the zero of the type of a scalar.
func zeroLike(v any) any {
	switch v.(type) {
	case bool:
		return false
	case string:
		return ""
	default:
		return int64(0)
	}
}

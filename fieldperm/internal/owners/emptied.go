package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// chargeEmptied charges the whole object if the next apply of a manager may remove what nobody owns. An apply converts the object to each version that has
// an entry, with nothing but the owned values. A conversion may drop an empty struct, map or list. So what a manager applies stays only if a value in it
// is applied in the same version: what others own by an update may go before. An entry that comes to another version has its own values only: others may
// go back. It looks at what lost an owned value, and at everything if owners change while entries have or had several versions.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() {
		return
	}
	var emptied *smdpath.Set // Nil is everything.
	if len(o.changed) == 0 || !o.haveVersions() {
		emptied = o.emptied()
		switch {
		case emptied.Empty():
			return
		case !isWithin(emptied, o.d.Kind.AlikeInAll(emptied)):
			emptied = nil // Another version may have it in any struct, map or list.
		}
	}
	all := map[string]*smdpath.Set{}
	for _, who := range o.is.order {
		e := o.is.entry(who)
		if o.d.Stops() || !o.is.applies(who) || !o.d.Kind.Knows(e.wroteIn) {
			continue
		}
		was := o.was.entry(who)
		moves := was != nil && was.wroteIn != e.wroteIn
		values := all[e.wroteIn]
		switch {
		case moves:
			values = smdpath.NewSet()
			o.addValues(values, e)
		case values == nil:
			values = o.appliedValues(e.wroteIn)
			all[e.wroteIn] = values
		}
		if o.mayEmpty(e, values, emptied, moves) {
			o.chargeAll(who)
			return
		}
	}
}

// emptied returns the paths of owned values that go or lose their scalars, of those that change and that a version has in another form or elsewhere, and
// of those that stay and lose an owner.
func (o *owners) emptied() *smdpath.Set {
	out := smdpath.NewSet()
	for i, m := range []*managedFields{o.was, o.is} {
		for _, who := range m.order {
			if i > 0 && !o.changed[who] {
				continue // It owned the same before.
			}
			owned, here := o.is.entry(who).set(), o.here(m.entry(who))
			alike := o.d.Kind.AlikeInAll(here)
			for p := range paths(here) {
				if o.d.Stops() {
					return out
				}
				r, points := o.d.Resolve(p), o.d.Points()
				isUnclear := points[len(points)-1].End // Several items have the keys.
				if r.Changed && (isUnclear || !hasScalar(r.New) || !alike.Has(p)) || !r.Changed && !owned.Has(p) {
					out.Insert(p.Copy())
				}
			}
		}
	}
	return out
}

// haveVersions reports whether the entries before and after have different versions.
func (o *owners) haveVersions() bool {
	versions := map[string]bool{}
	for _, m := range []*managedFields{o.was, o.is} {
		for _, who := range m.order {
			versions[m.entry(who).wroteIn] = true
		}
	}
	return len(versions) > 1
}

// appliedValues returns the paths of the values that managers apply in a version, as far as the new object shows them.
func (o *owners) appliedValues(version string) *smdpath.Set {
	out := smdpath.NewSet()
	for _, who := range o.is.order {
		if e := o.is.entry(who); e.wroteIn == version && o.is.applies(who) {
			o.addValues(out, e)
		}
	}
	return out
}

// addValues adds the paths of the values that an entry owns. That of kubectl is the same in every version.
func (o *owners) addValues(to *smdpath.Set, e *managedEntry) {
	here := o.here(e)
	for p := range paths(e.set()) {
		if o.d.Stops() {
			return
		}
		if p.Equals(lastApplied) || here.Has(p) && o.isValue(p) {
			to.Insert(p.Copy())
		}
	}
}

// isValue reports whether the new object has a value at a path that no conversion drops, and whose parts have no owners of their own.
func (o *owners) isValue(p smdpath.Path) bool {
	r := o.d.Resolve(p)
	return !diff.StaysContainer(r.Place.Node, r.New, r.New) && hasScalar(r.New)
}

// hasScalar reports whether a value is a boolean, a number or a string, or has one in it.
func hasScalar(v rawjson.Value) bool {
	has := v.IsScalar()
	for m := v.Members(); !has && m.Next(); {
		has = hasScalar(m.Value())
	}
	for i := v.Items(); !has && i.Next(); {
		has = hasScalar(i.Value())
	}
	return has
}

// mayEmpty reports whether a conversion may drop a struct, map or list that an entry applies and something was emptied in, with a value that nobody owns.
// The values of another version are not known, and those that an entry that moves will meet. Every object keeps its metadata.
func (o *owners) mayEmpty(e *managedEntry, values, emptied *smdpath.Set, moves bool) bool {
	kind := o.d.Kind.In(e.wroteIn)
	if kind == nil {
		return true
	}
	for p := range paths(e.set()) {
		if o.d.Stops() {
			return false
		}
		n := len(p)
		if values.Has(p) || !diff.HasOwnedParts(o.d.Follow(kind, rawjson.Value{}, p).Place.Node) {
			n-- // It has no parts with owners.
		}
		for ; n > 0; n-- {
			isMetadata := n == 1 && p[0].FieldName != nil && *p[0].FieldName == "metadata"
			if isMetadata || !under(values, p[:n]...).Empty() {
				break
			}
			isTouched := emptied == nil || !under(emptied, p[:n]...).Empty()
			if isTouched && (moves || e.wroteIn != o.version || o.hasUnowned(p[:n])) {
				return true
			}
		}
	}
	return false
}

// hasUnowned reports whether the new object has values below a path that nobody owns, or too many to look at.
func (o *owners) hasUnowned(p smdpath.Path) bool {
	sim := o.simulate()
	if sim.err == nil && sim.unowned == nil {
		has, err := sim.new.ToFieldSet()
		if err != nil {
			sim.err = err
		} else {
			sim.unowned = has.Leaves().Difference(sim.owned)
		}
	}
	return sim.err != nil || !under(sim.unowned, p...).Empty()
}

package owners

import (
	"cmp"
	"fmt"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// chargeEmptied charges the whole object if the next apply of a manager may remove what nobody owns. An apply converts the object to each version that has
// an entry, with nothing but the owned values. A conversion may drop an empty struct, map or list. So what a manager applies stays only if a value in it
// is applied in the same version, and all versions have it there: what others own by an update may go before. An entry that comes to another version has
// its own values only: others may go back. Another version may have what is written anywhere, so it does not matter where the request writes. That may come
// with a later entry of another version.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() {
		return
	}
	versions, all := o.versions(), map[string]*smdpath.Set{}
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
			o.addValues(values, e, versions)
		case values == nil:
			values = o.appliedValues(e.wroteIn, versions)
			all[e.wroteIn] = values
		}
		if p := o.mayEmpty(e, values, moves); p != nil {
			cure := fmt.Sprintf("%q applies %s in %s without a value that every version has in it, so a conversion may drop it: let it apply one", who.name, cmp.Or(p.String(), "."), e.wroteIn)
			charged := len(o.d.Out)
			o.chargeAll(who)
			for i := range o.d.Out[charged:] {
				o.d.Out[charged+i].Instead = cure
			}
			return
		}
	}
}

// appliedValues returns the paths of the values that managers apply in a version, as far as the new object shows them.
func (o *owners) appliedValues(version string, versions map[string]bool) *smdpath.Set {
	out := smdpath.NewSet()
	for _, who := range o.is.order {
		if e := o.is.entry(who); e.wroteIn == version && o.is.applies(who) {
			o.addValues(out, e, versions)
		}
	}
	return out
}

// addValues adds the paths of the values that an entry owns and that every version has in the same place. versions are those that have entries. The
// conversion gets the owned values only, so what depends on others may go. kube-apiserver itself, for built-in kinds, keeps each value, in an annotation of
// its own where a version lacks it.
func (o *owners) addValues(to *smdpath.Set, e *managedEntry, versions map[string]bool) {
	alike := o.d.Kind.AlikeInAll(o.here(e), versions)
	for p := range paths(e.set()) {
		if o.d.Stops() {
			return
		}
		isAnnotation := len(p) == len(lastApplied) && p[:2].Equals(lastApplied[:2])
		stays := alike.Has(p) || o.d.Kind.IsBuiltIn() && (e.wroteIn == o.version || isAnnotation)
		if p.Equals(lastApplied) || stays && o.isValue(p) {
			to.Insert(p.Copy())
		}
	}
}

// versions returns the versions that have or had entries.
func (o *owners) versions() map[string]bool {
	out := map[string]bool{}
	for _, m := range []*managedFields{o.was, o.is} {
		for _, who := range m.order {
			out[m.entry(who).wroteIn] = true
		}
	}
	return out
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

// mayEmpty returns a struct, map or list that an entry applies and that a conversion may drop, with a value that nobody owns; nil for none. The values of
// another version are not known, and those that an entry that moves will meet. Every object keeps its metadata.
func (o *owners) mayEmpty(e *managedEntry, values *smdpath.Set, moves bool) smdpath.Path {
	kind := o.d.Kind.In(e.wroteIn)
	if kind == nil {
		return smdpath.Path{}
	}
	for p := range paths(e.set()) {
		if o.d.Stops() {
			return nil
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
			if moves || e.wroteIn != o.version || o.hasUnowned(p[:n]) {
				return p[:n].Copy()
			}
		}
	}
	return nil
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

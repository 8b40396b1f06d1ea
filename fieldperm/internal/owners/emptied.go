package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeEmptied charges the whole object if owners change, entries of several versions are there, and the next apply of a manager may remove what
// nobody owns. An apply converts the object to each version that has an entry, with nothing but the owned values. A conversion may drop an empty
// struct, map or list. So what a manager applies stays only if a value in it is applied: what others own by an update may go before.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() || len(o.changed) == 0 || !o.is.hasVersions() {
		return
	}
	kept := map[string]*smdpath.Set{}
	for _, who := range o.is.order {
		e := o.is.entry(who)
		kind := o.d.Kind.In(e.wroteIn)
		if o.d.Stops() || kind == nil || !o.is.applies(who) {
			continue
		}
		if kept[e.wroteIn] == nil {
			kept[e.wroteIn] = o.appliedValues(e.wroteIn)
		}
		if o.mayEmpty(kind, e, kept[e.wroteIn]) {
			o.chargeAll(who)
			return
		}
	}
}

// hasVersions reports whether entries have different versions.
func (m *managedFields) hasVersions() bool {
	return slices.ContainsFunc(m.order, func(who manager) bool { return m.entry(who).wroteIn != m.entry(m.order[0]).wroteIn })
}

// appliedValues returns the paths of the values that managers apply, in the names of a version.
func (o *owners) appliedValues(version string) *smdpath.Set {
	out := smdpath.NewSet()
	for _, who := range o.is.order {
		e := o.is.entry(who)
		if !o.is.applies(who) || o.d.Kind.In(e.wroteIn) == nil {
			continue
		}
		all := e.set()
		if e.wroteIn != version {
			all = o.d.Kind.Alike(version, o.here(e))
		}
		for p := range paths(all) {
			if o.d.Stops() {
				break
			}
			if o.isValue(e, p) {
				out.Insert(p.Copy())
			}
		}
	}
	return out
}

// isValue reports whether an entry owns a value at a path that no conversion drops. Under the name of another version it is not known.
func (o *owners) isValue(e *managedEntry, p smdpath.Path) bool {
	if o.here(e).Has(p) {
		r := o.d.Resolve(p)
		return !diff.HasOwnedParts(r.Place.Node) && hasScalar(r.New)
	}
	at := o.d.Follow(o.d.Kind.In(e.wroteIn), rawjson.Value{}, p)
	return !at.End && isScalar(at.Place.Node)
}

func isScalar(n *schema.Node) bool { return n.AllowsScalar() && n.Map() == nil && n.List() == nil }

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

// mayEmpty reports whether a conversion may drop a struct, map or list that an entry applies, with a value that nobody owns. The values of another
// version are not known. Every object keeps its metadata.
func (o *owners) mayEmpty(kind *schema.Kind, e *managedEntry, kept *smdpath.Set) bool {
	for p := range paths(e.set()) {
		if o.d.Stops() {
			return false
		}
		n := len(p)
		if !diff.HasOwnedParts(o.d.Follow(kind, rawjson.Value{}, p).Place.Node) {
			n--
		}
		for ; n > 0; n-- {
			isMetadata := n == 1 && p[0].FieldName != nil && *p[0].FieldName == "metadata"
			if isMetadata || !under(kept, p[:n]...).Empty() {
				break
			}
			if e.wroteIn != o.version || o.hasUnowned(p[:n]) {
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

package owners

import (
	"slices"
	"strings"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// chargeEmptied charges the whole object if owners change, entries of several versions are there, and the next apply of a manager may remove what
// nobody owns. An apply converts the object to each version that has an entry, with nothing but the owned values. If all of those in a struct, map
// or list are as good as empty, a conversion may drop it.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() || len(o.changed) == 0 || !o.is.hasVersions() {
		return
	}
	var filled, unowned *smdpath.Set
	for _, who := range o.is.order {
		if o.d.Stops() || !o.is.applies(who) {
			continue
		}
		if filled == nil {
			filled, unowned = o.filled(), o.unowned()
		}
		if e := o.is.entry(who); unowned == nil || empties(o.here(e), filled, unowned) || o.appliesEmpty(e) {
			o.chargeAll(who)
			return
		}
	}
}

// hasVersions reports whether entries have different versions.
func (m *managedFields) hasVersions() bool {
	return slices.ContainsFunc(m.order, func(who manager) bool { return m.entry(who).wroteIn != m.entry(m.order[0]).wroteIn })
}

// filled returns the owned paths with values that no conversion drops. Every object has a name.
func (o *owners) filled() *smdpath.Set {
	out := smdpath.NewSet(smdpath.MakePathOrDie("metadata", "name"))
	for p := range paths(o.owned(everyone)) {
		if o.d.Stops() {
			break
		}
		if r := o.d.Resolve(p); !diff.HasOwnedParts(r.Place.Node) && !isZero(r.New) {
			out.Insert(p.Copy())
		}
	}
	return out
}

// isZero reports whether a conversion may leave out a value: it is absent or null, empty, or the zero of its type.
func isZero(v rawjson.Value) bool {
	if !v.IsScalar() {
		return v.IsEmpty()
	}
	text := strings.Trim(string(v.Raw()), "-.0")
	return slices.Contains([]string{"", `""`, "false"}, text)
}

// unowned returns the paths of the values that nobody owns, nil if there are too many to look at.
func (o *owners) unowned() *smdpath.Set {
	sim := o.simulate()
	if sim.err != nil {
		return nil
	}
	has, err := sim.new.ToFieldSet()
	if err != nil {
		return nil
	}
	return has.Leaves().Difference(sim.owned)
}

// empties reports whether something around an applied path has no filled value, but values that nobody owns. The sets are those at one path.
func empties(applied, filled, unowned *smdpath.Set) (is bool) {
	look := func(e smdpath.PathElement) {
		value, rest := under(filled, e), under(unowned, e)
		isFilled := filled.Members.Has(e) || !value.Empty()
		is = is || !rest.Empty() && (!isFilled || empties(under(applied, e), value, rest))
	}
	applied.Members.Iterate(look)
	applied.Children.Iterate(look)
	return is
}

// appliesEmpty reports whether an entry of another version owns a struct, map or list under another name, and nothing in it. What is in it here is
// not known.
func (o *owners) appliesEmpty(e *managedEntry) bool {
	kind := o.d.Kind.In(e.wroteIn)
	if kind == nil {
		return false
	}
	all := e.set()
	for p := range paths(all.Difference(o.here(e))) {
		if at := o.d.Follow(kind, rawjson.Value{}, p); o.d.Stops() || diff.HasOwnedParts(at.Place.Node) && under(all, p...).Empty() {
			return !o.d.Stops()
		}
	}
	return false
}

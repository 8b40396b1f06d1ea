package owners

import (
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeEmptied charges the whole object if owners change, entries of several versions are there, and a manager applied something empty: a conversion
// may drop that with the struct, map or list around it. An apply goes through each version that an entry names, with nothing but the owned fields.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() || len(o.changed) == 0 || !o.is.hasVersions() {
		return
	}
	for _, who := range o.is.order {
		if !o.d.Stops() && o.is.applies(who) && o.appliesEmpty(o.is.entry(who)) {
			o.chargeAll(who)
			return
		}
	}
}

// hasVersions reports whether entries have different versions.
func (m *managedFields) hasVersions() bool {
	return slices.ContainsFunc(m.order, func(who manager) bool { return m.entry(who).wroteIn != m.entry(m.order[0]).wroteIn })
}

// appliesEmpty reports whether an entry owns a struct, map or list, or a value that may be as good as empty, and nothing in it. Under the names
// of another version the values are not known.
func (o *owners) appliesEmpty(e *managedEntry) bool {
	kind := o.d.Kind.In(e.wroteIn)
	if kind == nil {
		return false
	}
	here, all := o.here(e), e.set()
	for p := range paths(all) {
		switch at := o.d.Follow(kind, rawjson.Value{}, p); {
		case o.d.Stops():
			return false
		case diff.HasOwnedParts(at.Place.Node):
			if under(all, p...).Empty() || here.Has(p) && under(here, p...).Empty() {
				return true
			}
		case here.Has(p):
			if r := o.d.Resolve(p); !isFilled(r.Place.Node, r.New) {
				return true
			}
		}
	}
	return false
}

// isFilled reports whether no conversion drops a value.
func isFilled(n *schema.Node, v rawjson.Value) bool {
	return v.IsScalar() || !v.IsEmpty() && !diff.HasOwnedParts(n)
}

package owners

import (
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeEmptied charges the whole object if a manager applied something empty, and a conversion may drop that with the struct, map or list
// around it. An apply goes through each version that an entry names, with nothing but the owned fields. So this is charged when an
// entry of another version appears, and when a value loses its last owner.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() || len(o.changed) == 0 {
		return
	}
	for _, who := range o.is.order {
		if !o.d.Stops() && o.is.applies(who) && o.appliesEmpty(o.is.entry(who)) && o.mayEmpty() {
			o.chargeAll(who)
			return
		}
	}
}

// mayEmpty reports whether an entry of a version appears that had none, or a value lost its last owner.
func (o *owners) mayEmpty() bool {
	had, has := map[string]bool{}, map[string]bool{}
	for _, who := range o.was.order {
		had[o.was.entry(who).wroteIn] = true
	}
	comes := false
	for _, who := range o.is.order {
		version := o.is.entry(who).wroteIn
		has[version], comes = true, comes || !had[version]
	}
	if len(has) < 2 || comes {
		return len(has) > 1
	}
	owned := o.owned(o.is, everyone)
	for p := range paths(o.owned(o.was, everyone)) {
		if r := o.d.Resolve(p); o.d.Stops() || isFilled(r.Place.Node, r.Old) && !(isFilled(r.Place.Node, r.New) && owned.Has(p)) {
			return true
		}
	}
	return false
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

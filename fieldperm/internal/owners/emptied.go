package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeEmptied charges the whole object if a manager applied a struct, map or list empty, and a conversion may drop it with what is in it. An
// apply goes through each version that an entry names, with nothing but the owned fields. So this is charged when an entry of another
// version appears, and when a path loses its last owner.
func (o *owners) chargeEmptied() {
	if o.d.Kind.ConvertsByName() || len(o.changed) == 0 {
		return
	}
	for i := range o.is.entries {
		e := &o.is.entries[i]
		if !o.d.Stops() && o.is.applies(e.manager) && o.appliesEmpty(e) && o.mayEmpty() {
			o.chargeAll(e.manager)
			return
		}
	}
}

// mayEmpty reports whether an entry of a version appears that had none, or a value lost its last owner.
func (o *owners) mayEmpty() bool {
	had, has, owned := map[string]bool{}, map[string]bool{}, []*smdpath.Set{}
	for i := range o.was.entries {
		had[o.was.entries[i].wroteIn] = true
		owned = append(owned, o.here(&o.was.entries[i]))
	}
	comes := false
	for i := range o.is.entries {
		has[o.is.entries[i].wroteIn] = true
		comes = comes || !had[o.is.entries[i].wroteIn]
	}
	if comes || len(has) < 2 {
		return comes && len(has) > 1
	}
	filled := o.filled()
	for p := range paths(union(owned)) {
		if r := o.d.Resolve(p); o.d.Stops() || isFilled(r.Place.Node, r.Old) && !filled.Has(p) {
			return true
		}
	}
	return false
}

// appliesEmpty reports whether a path of an entry leads to or through a struct, map or list in which no manager owns a value.
func (o *owners) appliesEmpty(e *managedEntry) bool {
	here, other := o.split(e)
	their, filled := o.d.Kind.In(e.wroteIn), o.filled()
	if their == nil {
		return false
	}
	for p := range paths(other) {
		if at := o.d.Follow(their, rawjson.Value{}, p); !hasBelow(other, p) && diff.HasOwnedParts(at.Place.Node) {
			return true
		}
	}
	for p := range paths(here) {
		if o.d.Stops() {
			break
		}
		r := o.d.Resolve(p)
		points, has := o.d.Points(), filled
		for i := range points {
			at := &points[i]
			if at.End || !diff.StaysContainer(at.Place.Node, at.Old, at.New) || i == len(p)-1 && !r.Container {
				break
			}
			if has = under(has, p[i]); has.Empty() && p[i].FieldName != nil && (i > 0 || !isMetadata(&p[i])) {
				return true
			}
		}
	}
	return false
}

// filled returns the owned paths that lead to a value that no conversion drops.
func (o *owners) filled() *smdpath.Set {
	sim := o.simulate()
	if sim.filled == nil {
		sim.filled = smdpath.NewSet()
		for p := range paths(sim.owned) {
			if r := o.d.Resolve(p); isFilled(r.Place.Node, r.New) {
				sim.filled.Insert(p)
			}
		}
	}
	return sim.filled
}

func isFilled(n *schema.Node, v rawjson.Value) bool {
	return v.IsScalar() || !v.IsEmpty() && !diff.HasOwnedParts(n)
}

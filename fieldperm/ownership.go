package fieldperm

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// ownership is a change of metadata.managedFields (D8): a power of its own, compared by managers and
// paths and charged at the paths.
type ownership struct {
	scope    scope
	old, new rawjson.Value
}

// finishOwnership charges changed owners after all values, so that a denial names a value first.
func (d *differ) finishOwnership() {
	if d.owned.scope.node == nil || d.err != nil || d.onlyOneTime() {
		return
	}
	if !d.owned.old.IsList() && d.same.Equal(d.owned.old, d.owned.new) {
		return
	}
	was, wasRead := readManagedFields(d.owned.old)
	is, isRead := readManagedFields(d.owned.new)
	if !wasRead || !isRead {
		d.charge(d.owned.scope, Ownership)
		return
	}
	managers := changedManagers(was, is)
	if d.create {
		// The API server writes the creator's entry; more than one is somebody's plan.
		if len(is.entries) > 1 || !is.valid(managers) {
			d.charge(d.owned.scope, Ownership)
		}
		return
	}
	if was.weight(managers)+is.weight(managers) > mostWeight {
		d.charge(d.owned.scope, Ownership)
		return
	}
	version, valid := d.new.Get("apiVersion"), was.valid(managers) && is.valid(managers)
	if !valid || touched(was, is, version) > 1 {
		d.charge(d.owned.scope, Ownership)
	}
	if !valid {
		return
	}
	o := d.newOwners(was, is, version)
	for _, who := range managers {
		before, after := was.fields(who), is.fields(who)
		lost, gone := before.Difference(after), fieldpath.NewSet()
		lost.Iterate(func(p fieldpath.Path) {
			if d.resolve(p).changed {
				gone.Insert(slices.Clone(p))
			}
		})
		o.each(lost, func(p fieldpath.Path) bool { return o.lossIsFree(who, p, gone) })
		o.each(after.Difference(before), func(p fieldpath.Path) bool { return o.gainIsFree(who, p) })
	}
}

// onlyOneTime reports whether nothing but the time of one entry changed at most, as with most updates: an
// API server does that by itself, and so nobody's fields need be looked at.
func (d *differ) onlyOneTime() bool {
	if !d.owned.old.IsList() || !d.owned.new.IsList() {
		return false
	}
	changed := 0
	x, y := d.owned.old.Items(), d.owned.new.Items()
	for {
		more, others := x.Next(), y.Next()
		if !more || !others {
			return more == others
		}
		if d.same.Same(x.Value(), y.Value()) {
			continue
		}
		was, ok1 := entryMembers(x.Value())
		is, ok2 := entryMembers(y.Value())
		if !ok1 || !ok2 {
			// What nobody understands may still be spelled in another way.
			if d.same.Equal(x.Value(), y.Value()) {
				continue
			}
			return false
		}
		respelled := true
		for i := range was {
			equal := d.same.Equal(was[i], is[i])
			respelled = respelled && equal
			// An API server leaves out what is "".
			if i != entryTime && !equal && (i == entryFields || was[i].Text() != is[i].Text()) {
				return false
			}
		}
		if respelled && d.same.Equal(x.Value(), y.Value()) {
			continue
		}
		if changed++; changed > 1 {
			return false
		}
	}
}

type owners struct {
	d       *differ
	was, is *managedFields
	// version is that of the new object.
	version rawjson.Value
	charged map[string]bool
	// vanished are the Update managers that are no longer there, and merged is what they owned, nil until
	// somebody asks.
	vanished []manager
	merged   *fieldpath.Set
}

func (d *differ) newOwners(was, is *managedFields, version rawjson.Value) *owners {
	o := &owners{d: d, was: was, is: is, version: version, charged: map[string]bool{}}
	for _, who := range was.order {
		if who.operation == operationUpdate && !is.has(who) {
			o.vanished = append(o.vanished, who)
		}
	}
	return o
}

// each charges every path that is not free, once however many managers it concerns.
func (o *owners) each(paths *fieldpath.Set, free func(fieldpath.Path) bool) {
	paths.Iterate(func(shared fieldpath.Path) {
		if o.d.stops() || free(shared) {
			return
		}
		s := o.d.resolve(slices.Clone(shared)).scope
		if key := s.identity(); !o.charged[key] {
			o.charged[key] = true
			o.d.charge(s, Ownership)
		}
	})
}

// lossIsFree: gone are the paths that the manager lost and whose values changed.
func (o *owners) lossIsFree(who manager, p fieldpath.Path, gone *fieldpath.Set) bool {
	if !o.is.has(who) && who.operation == operationUpdate && o.capped() && o.ancient(o.is).Has(p) {
		return true
	}
	return o.changedOrContainer(who, p, o.was, o.is) && (!o.memberOf(p) || hasBelow(gone, itemOf(p)))
}

// memberOf reports whether p is the own entry or a key field of an item that stays. To own those is
// to keep the item in the list, so they go free only with something in the item that changed.
func (o *owners) memberOf(p fieldpath.Path) bool {
	if item := itemOf(p); item[len(item)-1].Key == nil {
		return false
	}
	r := o.d.resolve(p)
	return r.container || r.keyField
}

// itemOf returns p if it ends at an item, else what is above it.
func itemOf(p fieldpath.Path) fieldpath.Path {
	if len(p) > 1 && p[len(p)-1].Key == nil {
		return p[:len(p)-1]
	}
	return p
}

func (o *owners) gainIsFree(who manager, p fieldpath.Path) bool {
	if o.changedOrContainer(who, p, o.is, o.was) {
		return true
	}
	if who.operation != operationUpdate {
		return false
	}
	switch who.name {
	case beforeFirstApplyOwner:
		return len(o.was.entries) == 0
	case ancientManager:
		return o.capped() && o.heldByVanished(p)
	}
	return false
}

// changedOrContainer reports whether the path's value changed in this request, which is charged as a
// change of value, or p is the own entry or a key field of something that exists before and after,
// and the manager holds nothing else there on the side that lacks p: whoever applies one field of a
// container cannot avoid co-owning the container.
//
// A path that leads nowhere may be another version's name for something: it changed if what is
// nearest above it did.
func (o *owners) changedOrContainer(who manager, p fieldpath.Path, holding, lacking *managedFields) bool {
	r := o.d.resolve(p)
	if r.changed || r.missing && r.changedAbove && holding.ofOtherVersion(who, p, o.version) {
		return true
	}
	if r.container {
		return !lacking.holdsBelow(who, p)
	}
	return r.keyField && !lacking.holdsBelow(who, p[:len(p)-1])
}

// capped reports whether the API server had more Update managers than it keeps.
func (o *owners) capped() bool {
	if o.was.updates < maxUpdateManagers || o.is.updates < maxUpdateManagers {
		return false
	}
	// It merges no more than it must: to make room for the one who makes the request, and for the bucket.
	return len(o.vanished) <= o.was.updates-maxUpdateManagers+2
}

func (o *owners) ancient(m *managedFields) *fieldpath.Set {
	return m.fields(manager{name: ancientManager, operation: operationUpdate})
}

// heldByVanished reports whether a manager that was merged away owned p.
func (o *owners) heldByVanished(p fieldpath.Path) bool {
	if o.merged == nil {
		o.merged = o.union(o.vanished)
	}
	return o.merged.Has(p)
}

// union halves the managers, because a union costs as much as its larger part.
func (o *owners) union(managers []manager) *fieldpath.Set {
	switch n := len(managers); n {
	case 0:
		return fieldpath.NewSet()
	case 1:
		return o.was.fields(managers[0])
	default:
		return o.union(managers[:n/2]).Union(o.union(managers[n/2:]))
	}
}

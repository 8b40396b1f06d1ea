package plain

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// ownership is a change of metadata.managedFields (D8): a power of its own, compared by managers and
// paths and charged at the paths.
type ownership struct {
	scope    scope
	old, new *value
}

// finishOwnership charges changed owners after all values, so that a denial names a value first.
func (d *differ) finishOwnership() {
	if d.owned == nil || d.err != nil || onlyOneTime(listItems(d.owned.old), listItems(d.owned.new)) {
		return
	}
	was, wasValid := decodeManagedFields(d.owned.old)
	is, isValid := decodeManagedFields(d.owned.new)
	if !wasValid || !isValid {
		d.charge(d.owned.scope, fieldperm.Ownership)
		return
	}
	if d.create {
		// The API server writes the creator's entry; more than one is somebody's plan.
		if len(is.entries) > 1 || len(is.entries) == 1 && !is.entries[0].valid {
			d.charge(d.owned.scope, fieldperm.Ownership)
		}
		return
	}
	managers := changed(was, is)
	if was.weight(managers)+is.weight(managers) > mostWeight {
		d.charge(d.owned.scope, fieldperm.Ownership)
		return
	}
	valid := was.valid(managers) && is.valid(managers)
	if !valid || touched(was, is, d.new.get("apiVersion")) > 1 {
		d.charge(d.owned.scope, fieldperm.Ownership)
	}
	if !valid {
		return
	}
	o := owners{d: d, was: was, is: is}
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

// onlyOneTime reports whether nothing but the time of one entry changed at most. Then nobody need
// understand the entries that stay.
func onlyOneTime(old, new []*value) bool {
	changed := 0
	for i := range old {
		if len(old) != len(new) {
			return false
		}
		if equal(old[i], new[i]) {
			continue
		}
		was, ok1 := decodeManagedEntry(old[i])
		is, ok2 := decodeManagedEntry(new[i])
		if changed++; !ok1 || !ok2 || changed > 1 || was.manager != is.manager || was.version != is.version || !equal(was.raw, is.raw) {
			return false
		}
	}
	return len(old) > 0 && len(old) == len(new)
}

type owners struct {
	d       *differ
	was, is *managedFields
	charged map[string]bool
}

// each charges every path that is not free, once however many managers it concerns.
func (o *owners) each(paths *fieldpath.Set, free func(fieldpath.Path) bool) {
	paths.Iterate(func(shared fieldpath.Path) {
		if o.d.err != nil || free(shared) {
			return
		}
		p := slices.Clone(shared)
		s := o.d.resolve(p).scope
		if key := s.identity(); !o.charged[key] {
			if o.charged == nil {
				o.charged = map[string]bool{}
			}
			o.charged[key] = true
			o.d.charge(s, fieldperm.Ownership)
		}
	})
}

// lossIsFree: gone are the paths that the manager lost and whose values changed.
func (o *owners) lossIsFree(who manager, p fieldpath.Path, gone *fieldpath.Set) bool {
	if _, stays := o.is.owners[who]; !stays && who.operation == operationUpdate && o.capped() && o.ancient(o.is).Has(p) {
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
	if r.changed || r.missing && r.changedAbove && holding.ofOtherVersion(who, p, o.d.new.get("apiVersion")) {
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
	vanished := 0
	for _, who := range o.was.order {
		if _, stays := o.is.owners[who]; !stays && who.operation == operationUpdate {
			vanished++
		}
	}
	return vanished <= o.was.updates-maxUpdateManagers+2
}

func (o *owners) ancient(m *managedFields) *fieldpath.Set {
	return m.fields(manager{name: ancientManager, operation: operationUpdate})
}

// heldByVanished reports whether a manager that was merged away owned p.
func (o *owners) heldByVanished(p fieldpath.Path) bool {
	for _, who := range o.was.order {
		if _, stays := o.is.owners[who]; !stays && who.operation == operationUpdate && o.was.fields(who).Has(p) {
			return true
		}
	}
	return false
}

func hasBelow(set *fieldpath.Set, p fieldpath.Path) bool {
	for _, element := range p {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

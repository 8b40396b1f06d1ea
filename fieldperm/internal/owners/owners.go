package owners

import (
	"slices"
	"strconv"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
)

// Charge charges changed owners, after all values, so that a denial names a changed value first.
func Charge(d *charge.Charger) {
	chargeScale(d)
	chargeManagedFields(d)
}

// chargeManagedFields charges the change of metadata.managedFields. Changing the owner of a field needs the verb of that field (D8). The comparison
// works on managers and paths, and the requirements are charged at the paths. A changed value counts where its owners stay, if a conversion may drop it.
func chargeManagedFields(d *charge.Charger) {
	changes := ownersChange(d)
	if d.Err != nil || !changes && (len(d.Out) == 0 || d.Kind.ConvertsByName()) {
		return
	}
	is, isRead := readManagedFields(d.New.Get("metadata").Get("managedFields"))
	was, wasRead := is, isRead
	if changes {
		was, wasRead = readManagedFields(d.Owned.Old)
	}
	was.keepLast()
	managers := changedManagers(was, is)
	o := newOwners(d, was, is, managers)
	d.StartOwning()
	upgraded := slices.DeleteFunc(slices.Clone(is.order), func(who manager) bool { return was.applies(who) || !is.applies(who) })
	weight := was.weight(managers) + is.weight(managers) + is.weight(upgraded)
	if !d.Kind.ConvertsByName() {
		weight += is.weight(is.order)
	}
	if !wasRead || !isRead || weight > mostWeight || !was.valid(managers) || !is.valid(managers) {
		o.chargeObject("")
		return
	}
	if weight > lightWeight {
		share := int64(min(weight, mostMemory))
		if err := memory.Acquire(d.Context(), share); err != nil {
			d.Err = change.Stopped(err)
			return
		}
		defer memory.Release(share)
	}
	if d.Create {
		if len(is.order) > 1 {
			// The API server writes one entry, for the client that creates the object. More entries come from the client.
			o.charge(d.Resolve(managedFieldsOf).Place)
		}
		for _, who := range is.order {
			o.chargeCreator(who)
		}
		stopOwning(d)
		return
	}
	if !o.timesAreFree() {
		o.chargeObject("")
	}
	for _, who := range managers {
		o.compare(who)
	}
	for _, who := range upgraded {
		o.chargeUpgraded(who)
	}
	o.chargeEmptied()
	if !o.applied {
		stopOwning(d)
	}
}

// ownersChange reports whether more than the time of one entry changed.
func ownersChange(d *charge.Charger) bool {
	return d.Owned.Met && !onlyOwnTime(d) && !d.Same.Equal(d.Owned.Old, d.Owned.New)
}

// stopOwning ends StartOwning if no owner was charged.
func stopOwning(d *charge.Charger) {
	if !slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return r.Operation == change.Ownership }) {
		d.StopOwning()
	}
}

// owners is one comparison of owners.
type owners struct {
	places
	was, is *managedFields
	// changed are the managers whose entries differ. vanished are the Update managers that the request removed.
	changed  map[manager]bool
	vanished []manager
	// capped: see isCapped.
	capped bool
	// version is that of the new object.
	version string
	// written: a value changed. applied: a manager came to own something by applying.
	written, applied bool
	// simulation is nil until the first manager's next apply is simulated.
	simulation *simulation
}

func newOwners(d *charge.Charger, was, is *managedFields, changed []manager) *owners {
	o := &owners{
		places: places{d: d, charged: map[within]bool{}},
		was:    was, is: is, version: d.New.Get("apiVersion").Text(), written: len(d.Out) > 0, changed: make(map[manager]bool, len(changed)),
	}
	for _, who := range changed {
		o.changed[who] = true
		if who.operation == operationUpdate && !is.has(who) {
			o.vanished = append(o.vanished, who)
		}
	}
	o.capped = o.isCapped()
	return o
}

// compare charges what a manager lost and gained, except what is free, and what its next apply would change.
func (o *owners) compare(who manager) {
	if o.droppedByServer(who) {
		return
	}
	was, is := o.was.entry(who), o.is.entry(who)
	before, otherBefore := o.split(was, o.reconciled(was))
	after, otherAfter := o.split(is, is.set())
	lost, gained := before.Difference(after), after.Difference(before)
	if was != nil && is != nil && was.wroteIn != is.wroteIn && !o.d.Kind.Knows(was.wroteIn) {
		lost, gained, before = before, after, nothing
	}
	mergedFrom, mergedInto := o.mergedFrom(who), o.mergedInto(who, false)
	if !isWithin(otherBefore.Difference(otherAfter), mergedFrom) || o.gainsInAnother(was, is, gained.Union(otherAfter.Difference(otherBefore)).Difference(mergedInto)) ||
		is != nil && (o.breaksItem(is, nil, before, after) || !o.reconciled(is).Equals(is.set())) {
		o.chargeAll(who)
		return
	}
	o.each(lost, func(p smdpath.Path) bool {
		r := o.d.Resolve(p)
		return r.Changed || r.ByServer || mergedFrom.Has(p)
	})
	if len(o.is.upgraded) > 0 {
		o.chargeBarriersOf(gained.Intersection(mergedInto).Difference(o.mergedInto(who, true)))
	}
	o.each(gained, func(p smdpath.Path) bool { return mergedInto.Has(p) || o.gainIsFree(who, p, before, gained) })
	if gained.Empty() || !o.is.applies(who) {
		return
	}
	if o.was.applies(who) {
		o.chargeTaken(gained)
		o.chargeNext(who, before, gained)
	}
	if who.operation == operationApply && was != nil {
		// Every later apply of the manager needs the verbs of what it gained, so who applies in its name must hold those of the rest.
		o.each(before, func(p smdpath.Path) bool {
			r := o.d.Resolve(p)
			return r.Changed || r.Own() && !(isItem(p) && onlyKeys(*p[len(p)-1].Key, under(before, p...)))
		})
	}
}

// chargeUpgraded charges everything that a manager owns that becomes an applier with the request. What an applier owned stays an applier's by a
// merge, and of the rest only the barriers count.
func (o *owners) chargeUpgraded(who manager) {
	e := o.is.entry(who)
	here, other := o.split(e, e.set())
	if !other.Empty() {
		o.chargeAll(who)
		return
	}
	if applied := o.mergedInto(who, true); applied.Has(lastApplied) {
		o.chargeBarriersOf(here.Difference(applied))
	} else {
		o.each(here, func(p smdpath.Path) bool { return o.d.Resolve(p).Changed })
	}
	o.chargeTaken(here)
	o.chargeNext(who, nothing, here)
}

// split divides the paths of an entry into those that mean the same in the object's version, and the others. If the version of the entry is
// not known, all paths count as the same.
func (o *owners) split(e *managedEntry, all *smdpath.Set) (here, other *smdpath.Set) {
	if e == nil || !o.d.Kind.Knows(e.wroteIn) {
		return all, nothing
	}
	here = o.d.Kind.Alike(e.wroteIn, all)
	return here, all.Difference(here)
}

// gainsInAnother reports whether something is gained in an entry of another version than the object's, or an entry comes to have such a version. An
// API server does neither, but for merges of old entries.
func (o *owners) gainsInAnother(was, is *managedEntry, gained *smdpath.Set) bool {
	return is != nil && is.wroteIn != o.version && (!gained.Empty() || was != nil && was.wroteIn != is.wroteIn)
}

// isWithin reports whether a set has all paths of another one.
func isWithin(paths, of *smdpath.Set) bool { return paths.Empty() || paths.Difference(of).Empty() }

// gainIsFree reports whether a manager gains a path without a charge. A user who applies the first field of an item cannot avoid co-owning
// the item. If the next apply would remove the item for that, it is charged there.
func (o *owners) gainIsFree(who manager, p smdpath.Path, before, gained *smdpath.Set) bool {
	r := o.d.Resolve(p)
	if r.Changed {
		return !o.isFilled(who, p, r)
	}
	if item := r.Owner(p); who.operation == operationApply && r.Own() && isItem(item) && under(before, item...).Empty() {
		item = item.Copy()
		for field := range paths(under(gained, item...)) {
			if r := o.d.Resolve(append(item, field...)); !r.Own() || o.d.Stops() {
				return true
			}
		}
	}
	return false
}

// onlyKeys reports whether a set at an item has nothing but the keys of the item, so that its owner decides about the item alone.
func onlyKeys(keys smdvalue.FieldList, in *smdpath.Set) bool {
	for p := range paths(in) {
		if len(p) > 1 || p[0].FieldName == nil || !slices.ContainsFunc(keys, func(k smdvalue.Field) bool { return k.Name == *p[0].FieldName }) {
			return false
		}
	}
	return true
}

func isItem(p smdpath.Path) bool { return len(p) > 0 && p[len(p)-1].Key != nil }

// chargeCreator charges what the creator of an object owns and the object lacks, and what the creator left empty and others filled. An API server gives
// a creator what the object has, and zeros that it applies.
func (o *owners) chargeCreator(who manager) {
	o.each(o.is.entry(who).set(), func(p smdpath.Path) bool {
		r := o.d.Resolve(p)
		return !r.Missing && !o.isFilled(who, p, r)
	})
}

// isFilled reports whether a manager applied a struct, map or list empty of which others own the parts. p was resolved last.
func (o *owners) isFilled(who manager, p smdpath.Path, r diff.Resolved) bool {
	points := o.d.Points()
	isThere := !points[len(points)-1].End && diff.StaysContainer(r.Place.Node, r.New, r.New) && !r.New.IsEmpty()
	return isThere && !isItem(p) && o.is.applies(who) && under(o.is.entry(who).set(), p...).Empty()
}

// chargeTaken charges the barriers at and in a changed value that a manager comes to own by applying. The next apply without the value
// deletes all of it, the new and the unchanged parts. So the barriers count whatever a condition says about the change of this request.
func (o *owners) chargeTaken(gained *smdpath.Set) {
	o.applied = true
	if !o.d.LooksInside(o.d.Root) {
		return
	}
	for p := range paths(gained) {
		if o.d.Stops() {
			return
		}
		if r := o.d.Resolve(p); r.Changed {
			o.chargeBarriersAt(r.Place, r.Old, r.New)
		}
	}
}

// chargeAll charges the whole object because of the entry of a manager.
func (o *owners) chargeAll(who manager) {
	o.applied = true
	e := o.is.entry(who)
	if e == nil {
		e = o.was.entry(who)
	}
	o.chargeObject(strconv.Quote(who.name) + " in " + e.wroteIn)
}

package owners

import (
	"crypto/sha256"
	"slices"
	"strconv"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Charge charges changed owners, after all values, so that a denial names a changed value first.
func Charge(d *charge.Charger) {
	chargeScale(d)
	chargeManagedFields(d)
}

// chargeManagedFields charges the change of metadata.managedFields that the comparison met. Changing the owner of a field needs the verb of
// that field (D8). The comparison works on managers and paths, and the requirements are charged at the paths.
func chargeManagedFields(d *charge.Charger) {
	if !d.Owned.Met || d.Err != nil {
		return
	}
	if touched, only := onlyOneTime(d); only {
		if e, ok := readManagedEntry(touched); ok && (e.isAged() || !ownsChange(d, &e)) {
			chargeAnyOwner(d)
		}
		return
	}
	if !d.Owned.Old.IsList() && d.Same.Equal(d.Owned.Old, d.Owned.New) {
		return
	}
	if !d.Create {
		d.StartOwning()
	}
	was, wasRead := readManagedFields(d.Owned.Old)
	is, isRead := readManagedFields(d.Owned.New)
	if !wasRead || !isRead {
		chargeAnyOwner(d)
		return
	}
	was.keepLast()
	managers := changedManagers(was, is)
	if d.Create {
		// The API server writes one entry, for the client that creates the object. More entries come from the client.
		if len(is.entries) > 1 || !is.valid(managers) {
			d.Charge(d.Resolve(managedFieldsOf).Place, change.Ownership)
		}
		return
	}
	weight := was.weight(managers) + is.weight(managers) + is.weight(upgradedSince(was, is))
	if weight > mostWeight || !was.valid(managers) || !is.valid(managers) {
		chargeAnyOwner(d)
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
	o := newOwners(d, was, is, managers)
	if o.ages() || !o.timesAreFree() {
		o.chargeObject("")
	}
	for _, who := range managers {
		o.compare(who)
	}
	for _, who := range upgradedSince(was, is) {
		o.chargeUpgraded(who)
	}
	o.chargeEmptied()
	if !o.applied && !slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return r.Operation == change.Ownership }) {
		d.StopOwning()
	}
}

// chargeAnyOwner charges the whole object and every barrier of it. It is for requests where the fields that changed owners cannot be
// determined.
func chargeAnyOwner(d *charge.Charger) {
	d.StartOwning()
	newOwners(d, &managedFields{}, &managedFields{}, nil).chargeObject("")
}

// owners is one comparison of owners.
type owners struct {
	d       *charge.Charger
	was, is *managedFields
	// changed are the managers whose entries differ. vanished are the Update managers that the request removed.
	changed  map[manager]bool
	vanished []manager
	// version is that of the new object.
	version string
	// charged are the requirements so far. text is memory for the text of one, and digests shorten their paths.
	charged map[identity]bool
	text    []byte
	digests fieldpath.Digests
	// whole are the values for which every barrier inside is charged.
	whole map[within]bool
	// written: a value changed. applied: a manager came to own something by applying. barriers: every barrier of the kind is charged.
	written, applied, barriers bool
	// merged has the results of ownedByVanished.
	merged map[vanished]*smdpath.Set
	// simulation is nil until the first manager's next apply is simulated.
	simulation *simulation
}

// within is a value and what its place demands. The barriers inside it depend on both.
type within struct {
	value   rawjson.Value
	demands identity
}

// identity is a hash that is equal for requirements that demand the same of the same path. Hashes of their texts take less memory than the texts.
type identity [sha256.Size]byte

func (o *owners) identity(demands ...change.Requirement) identity {
	out := o.text[:0]
	for i := range demands {
		out = o.digests.Append(out, demands[i].Path)
		for _, v := range demands[i].Chain {
			out = append(append(out, ' '), v.String()...)
		}
		out = strconv.AppendInt(append(out, ' '), int64(demands[i].Barrier), 10)
	}
	o.text = out
	return sha256.Sum256(out)
}

func newOwners(d *charge.Charger, was, is *managedFields, changed []manager) *owners {
	o := &owners{
		d: d, was: was, is: is, version: d.New.Get("apiVersion").Text(), written: len(d.Out) > 0,
		changed: make(map[manager]bool, len(changed)), charged: map[identity]bool{}, whole: map[within]bool{}, merged: map[vanished]*smdpath.Set{},
	}
	for _, who := range changed {
		o.changed[who] = true
	}
	for _, who := range was.order {
		if who.operation == operationUpdate && !is.has(who) {
			o.vanished = append(o.vanished, who)
		}
	}
	return o
}

// compare charges what a manager lost and gained, except what is free, and what its next apply would change.
func (o *owners) compare(who manager) {
	if o.droppedByServer(who) {
		return
	}
	before, otherBefore := o.reconciled(o.was.entry(who))
	after, otherAfter := o.split(o.is.entry(who))
	lost, gained := before.Difference(after), after.Difference(before)
	if o.versionChanged(who) && !o.d.Kind.Knows(o.was.entry(who).wroteIn) {
		lost, gained, before = before, after, nothing
	}
	if !o.losesInAnother(who, otherBefore.Difference(otherAfter)) || o.gainsInAnother(who, gained.Union(otherAfter.Difference(otherBefore))) ||
		o.breaksItem(who, before, after) {
		o.chargeAll(who)
		return
	}
	o.each(lost, func(p smdpath.Path) bool { return o.lossIsFree(who, p) })
	solid := o.solid(who, gained)
	o.each(gained, func(p smdpath.Path) bool { return o.gainIsFree(who, p, before, solid) })
	if gained.Empty() || !o.is.applies(who) {
		return
	}
	if o.was.applies(who) {
		o.chargeTaken(who, gained)
		o.chargeNext(who, before, gained)
	}
	if who.operation == operationApply && o.was.has(who) {
		// Every later apply of the manager needs the verbs of what it gained, so who applies in its name must hold those of the rest.
		o.each(before, func(p smdpath.Path) bool { r := o.d.Resolve(p); return r.Changed || r.Own() })
	}
}

// chargeUpgraded charges everything that a manager owns that becomes an applier with the request.
func (o *owners) chargeUpgraded(who manager) {
	here, other := o.split(o.is.entry(who))
	if !other.Empty() {
		o.chargeAll(who)
		return
	}
	if o.isBucket(who) && o.ownedByVanished(who.version, true).Has(lastApplied) {
		o.chargeBarriersOf(who, here)
	} else {
		o.each(here, func(p smdpath.Path) bool { return o.d.Resolve(p).Changed })
	}
	o.chargeTaken(who, here)
	o.chargeNext(who, nothing, here)
}

// split divides the paths of an entry into those that mean the same in the object's version, and the others. If the version of the entry is
// not known, all paths count as the same.
func (o *owners) split(e *managedEntry) (here, other *smdpath.Set) {
	if e == nil {
		return nothing, nothing
	}
	return o.splitSet(e, e.set())
}

func (o *owners) splitSet(e *managedEntry, all *smdpath.Set) (here, other *smdpath.Set) {
	if e.wroteIn == o.version || !o.d.Kind.Knows(e.wroteIn) {
		return all, nothing
	}
	if here = o.d.Kind.Alike(e.wroteIn, all); here == all {
		return all, nothing
	}
	return here, all.Difference(here)
}

func (o *owners) versionChanged(who manager) bool {
	was, is := o.was.entry(who), o.is.entry(who)
	return was != nil && is != nil && was.wroteIn != is.wroteIn
}

// losesInAnother charges what a manager loses under names that another version has. Where the value of the same name changes, it is what the
// name means in that version, with the barriers there. It reports false for anything else, for which the whole object is charged.
func (o *owners) losesInAnother(who manager, lost *smdpath.Set) bool {
	for p := range paths(lost) {
		if o.d.Stops() {
			return true
		}
		if o.isMerged(who, p) {
			continue
		}
		their := o.d.Kind.In(o.was.entry(who).wroteIn)
		if their == nil || diff.IsKey(p) || !o.d.Resolve(p).Changed {
			return false
		}
		s := o.d.Follow(their, rawjson.Value{}, p).Place
		uncovered := o.d.UncoveredAt(s)
		if o.d.Barred(s) || diff.HasOwnedParts(s.Node) { // The owner of a struct, map or list keeps what no manager owns in it.
			o.charge(s)
		}
		o.chargeVerbs(s.Node.BarredWithin(uncovered))
		o.chargeVerbs(their.HiddenBarriers(uncovered))
	}
	return true
}

// gainsInAnother reports whether a manager gains something in an entry of another version, or whether the version of its entry changes to
// another one. An API server does so only when it merges old entries.
func (o *owners) gainsInAnother(who manager, gained *smdpath.Set) bool {
	e := o.is.entry(who)
	if e == nil || e.wroteIn == o.version || gained.Empty() && !o.versionChanged(who) {
		return false
	}
	return !o.isBucket(who) || !gained.Difference(o.ownedByVanished(who.version, false)).Empty()
}

// each charges every path that is not free. The owner of a thing decides about what is in it, so the barriers there are charged as well.
func (o *owners) each(of *smdpath.Set, free func(smdpath.Path) bool) {
	for p := range paths(of) {
		if o.d.Stops() {
			return
		}
		if !free(p) {
			o.chargePlace(p, o.d.Resolve(p))
		}
	}
}

// chargePlace charges the place of a path and the barriers in it. An item whose keys have no owner is removed, even if managers own the rest
// of the item, so a key is charged with its item.
func (o *owners) chargePlace(p smdpath.Path, r diff.Resolved) {
	o.charge(r.Place)
	if r.KeyField {
		r = o.d.Resolve(r.Owner(p))
		o.charge(r.Place)
	}
	o.chargeWithin(r.Place, r.Old)
}

func (o *owners) charge(p *diff.Place) { o.require(o.d.Demands(p)) }

// require charges requirements, each once.
func (o *owners) require(found []change.Requirement) {
	for _, r := range found {
		r.Operation = change.Ownership
		if key := o.identity(r); !o.charged[key] {
			o.charged[key] = true
			o.d.Out = append(o.d.Out, r)
		}
	}
}

// chargeWithin charges the barriers inside a value that is charged as a whole, as if the value vanished.
func (o *owners) chargeWithin(p *diff.Place, was rawjson.Value) {
	if was.IsScalar() || !o.d.MayBarWithin(p) {
		return
	}
	at := within{was, o.identity(o.d.Demands(p)...)}
	if o.whole[at] {
		return // Thousands of managers may come to own one large value, so it is walked once.
	}
	o.whole[at] = true
	o.require(o.d.Within(p, was))
}

// chargeBarriersAt charges the barriers at and in a place.
func (o *owners) chargeBarriersAt(p *diff.Place, values ...rawjson.Value) {
	if o.d.Barred(p) {
		o.charge(p)
	}
	for _, v := range values {
		o.chargeWithin(p, v)
	}
}

// lossIsFree reports whether a manager loses a path without a charge.
func (o *owners) lossIsFree(who manager, p smdpath.Path) bool {
	if o.isMerged(who, p) {
		return true
	}
	r := o.d.Resolve(p)
	return r.Changed || r.ByServer
}

// gainIsFree reports whether a manager gains a path without a charge. before has what it owned, solid what it gains, except own entries and
// keys. A user who applies the first field of an item cannot avoid co-owning the item. If the next apply would remove the item for that, it is
// charged there.
func (o *owners) gainIsFree(who manager, p smdpath.Path, before, solid *smdpath.Set) bool {
	r := o.d.Resolve(p)
	switch {
	case r.Changed:
		return true
	case o.isBucket(who) && o.ownedByVanished(who.version, false).Has(p):
		if len(o.is.upgraded()) > 0 && !o.ownedByVanished(who.version, true).Has(p) {
			o.chargeBarriersAt(r.Place, r.Old)
		}
		return true
	case who.operation == operationApply:
		item := r.Owner(p)
		return r.Own() && isItem(item) && !hasBelow(before, item) && hasBelow(solid, item)
	}
	return who.name == beforeFirstApplyOwner && len(o.was.entries) == 0
}

func isItem(p smdpath.Path) bool { return len(p) > 0 && p[len(p)-1].Key != nil }

// solid returns the paths of a set that are no own entries and no keys. It is empty for managers that do not apply.
func (o *owners) solid(who manager, of *smdpath.Set) *smdpath.Set {
	out := smdpath.NewSet()
	if who.operation != operationApply {
		return out
	}
	for p := range paths(of) {
		if o.d.Stops() {
			break
		}
		if r := o.d.Resolve(p); !r.Own() {
			out.Insert(p)
		}
	}
	return out
}

// chargeTaken charges the barriers at and in a changed value that a manager comes to own by applying. The next apply without the value
// deletes all of it, the new and the unchanged parts. So the barriers count whatever a condition says about the change of this request.
func (o *owners) chargeTaken(who manager, gained *smdpath.Set) {
	manifest := o.manifest(who)
	for p := range paths(gained) {
		if o.d.Stops() {
			return
		}
		if o.isApplied(manifest, p) {
			continue
		}
		o.applied = true
		if !o.d.MayBarWithin(o.d.Root) {
			continue
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

// chargeObject charges the whole object and every barrier of the kind, because a guarded field may not exist yet. entry names the entry that
// is the reason, "" if there is no single one.
func (o *owners) chargeObject(entry string) {
	charged := len(o.d.Out)
	o.charge(o.d.Root)
	if !o.barriers {
		o.barriers = true
		o.chargeVerbs(o.d.Kind.Root.BarredWithin(o.d.Uncovered))
		if o.d.InStatus != nil {
			status := o.d.Follow(o.d.Kind, rawjson.Value{}, statusOf).Place
			if o.d.Barred(status) {
				o.charge(status)
			}
			o.chargeVerbs(status.Node.BarredWithin(o.d.InStatus))
		}
	}
	for i := range o.d.Out[charged:] {
		o.d.Out[charged+i].Entry = entry
	}
}

var statusOf, managedFieldsOf = smdpath.MakePathOrDie("status"), smdpath.MakePathOrDie("metadata", "managedFields")

// chargeVerbs charges barriers whose place is not known.
func (o *owners) chargeVerbs(barriers []verbs.Verb) {
	for _, v := range barriers {
		o.require([]change.Requirement{{Chain: []verbs.Verb{v}}})
	}
}

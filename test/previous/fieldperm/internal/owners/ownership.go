package owners

import (
	"crypto/sha256"
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm/change"
	"github.com/fieldperm/fieldperm/test/previous/fieldperm/internal/walk"
	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// Charge charges changed owners, after all values, so that a denial names a changed value first.
func Charge(d *walk.Differ) {
	chargeScale(d)
	chargeManagedFields(d)
}

// chargeManagedFields charges the change of metadata.managedFields that the walk met. Changing the owner of a field needs the verb of
// that field (D8). The comparison works on managers and paths, and the requirements are charged at the paths.
func chargeManagedFields(d *walk.Differ) {
	if d.Owned.Scope.Node == nil || d.Err != nil {
		return
	}
	if touched, only := onlyOneTime(d); only {
		switch e, ok := readManagedEntry(touched); {
		case !ok:
		case e.isAged():
			chargeAnyOwner(d)
		case !ownsChange(d, &e):
			d.StartOwning()
			d.Charge(d.Owned.Scope, change.Ownership)
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
			d.Charge(d.Owned.Scope, change.Ownership)
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
	switch {
	case o.ages():
		o.chargeObject("")
	case !o.timesAreFree():
		d.Charge(d.Owned.Scope, change.Ownership)
	}
	for _, who := range managers {
		o.compare(who)
	}
	o.chargeUpgraded()
	o.chargeHollow()
	if !o.applied && !slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return r.Operation == change.Ownership }) {
		d.StopOwning()
	}
}

// chargeAnyOwner charges the whole object and every barrier of it. It is for requests where the fields that changed owners cannot be
// determined.
func chargeAnyOwner(d *walk.Differ) {
	d.StartOwning()
	newOwners(d, &managedFields{}, &managedFields{}, nil).chargeObject("")
}

// owners is one comparison of owners.
type owners struct {
	d       *walk.Differ
	was, is *managedFields
	// changed are the managers whose entries differ.
	changed map[manager]bool
	// version is that of the new object.
	version string
	// charged are the places that are charged. text is memory for the text of one, and digests shorten their paths.
	charged map[identity]bool
	text    []byte
	digests fieldpath.Digests
	// written reports whether a value changed. applied reports whether a manager came to own something by applying.
	written, applied bool
	// vanished are the Update managers that the request removed. merged has the paths that they owned, by version.
	vanished []manager
	merged   map[string]*smdpath.Set
	// kept has the paths that each manager owned before and still owns. keptByUpdate has those of managers that do not apply;
	// keptByApply is the part of the managers that apply. any is everything that has an owner after the request. All are nil until they
	// are needed.
	kept, keptByUpdate, keptByApply, any *smdpath.Set
	// unowned are the containers whose unowned parts are charged. whole are the values for which every barrier inside is charged.
	unowned map[rawjson.Value]bool
	// brought are the containers in which only the barriers are charged, because other managers apply something there.
	brought map[rawjson.Value]bool
	whole   map[within]bool
	// barriers says that every barrier of the kind is charged.
	barriers bool
	// guarded are the places of other versions in which all barriers are charged. hidden are the top-level fields of other versions whose
	// hidden barriers are charged.
	guarded map[theirNode]bool
	hidden  map[theirField]bool
}

// within is a value in a scope. The barriers inside it depend on both.
type within struct {
	value rawjson.Value
	scope identity
}

// identity is a hash that is equal for places that are charged alike. Hashes of their texts take less memory than the texts.
type identity [sha256.Size]byte

func (o *owners) identity(s *walk.Scope) identity {
	o.text = s.AppendIdentity(o.text[:0], &o.digests)
	return sha256.Sum256(o.text)
}

func newOwners(d *walk.Differ, was, is *managedFields, changed []manager) *owners {
	o := &owners{
		d: d, was: was, is: is, version: d.New.Get("apiVersion").Text(), written: len(d.Out) > 0,
		changed: make(map[manager]bool, len(changed)), charged: map[identity]bool{}, guarded: map[theirNode]bool{}, hidden: map[theirField]bool{},
		unowned: map[rawjson.Value]bool{}, brought: map[rawjson.Value]bool{},
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

// compare charges the paths that a manager lost and gained, except those that are free.
func (o *owners) compare(who manager) {
	if o.droppedByServer(who) {
		return
	}
	before, otherwiseBefore := o.split(o.was, who)
	after, otherwiseAfter := o.split(o.is, who)
	switch their := o.theirs(who); {
	case o.versionChanged(who):
	case their != nil:
		before, after = folded(their.Root, before), folded(their.Root, after)
		otherwiseBefore, otherwiseAfter = folded(their.Root, otherwiseBefore), folded(their.Root, otherwiseAfter)
	case folded(o.d.Kind.Root, after) == after:
		// The types of the version are not known. An API server that folds the parts leaves none of them.
		before = folded(o.d.Kind.Root, before)
	}
	otherwiseBefore, otherwiseAfter = otherwiseBefore.Difference(otherwiseAfter), otherwiseAfter.Difference(otherwiseBefore)
	lost, gained := before.Difference(after), after.Difference(before)
	if o.versionChanged(who) && !o.d.Kind.Knows(o.was.entry(who).wroteIn) {
		lost, gained = before, after
	}
	o.chargeBrokenItems(who, lost, gained, otherwiseBefore)
	o.chargeLostOtherwise(who, otherwiseBefore)
	if o.gainsOtherwise(who, gained, otherwiseAfter) {
		o.chargeAll(who)
		o.applied = true
		gained = smdpath.NewSet()
	}
	gone := o.only(who, lost, func(r *walk.Resolved) bool { return r.Changed })
	o.each(lost, func(p smdpath.Path) bool { return o.lossIsFree(who, p, after, gone) })
	solid := o.only(who, gained, func(r *walk.Resolved) bool { return !r.Own() })
	o.each(gained, func(p smdpath.Path) bool { return o.gainIsFree(who, p, before, solid) })
	if !gained.Empty() && o.is.applies(who) {
		o.chargeUnheld(who, gained)
		o.chargeTaken(who, gained)
	}
}

func (o *owners) versionChanged(who manager) bool {
	was, is := o.was.entry(who), o.is.entry(who)
	return was != nil && is != nil && was.wroteIn != is.wroteIn
}

// only returns the paths for which the condition holds. They count for the items of an applier. Without such items it returns an empty set.
func (o *owners) only(who manager, of *smdpath.Set, is func(*walk.Resolved) bool) *smdpath.Set {
	out := smdpath.NewSet()
	if who.operation != operationApply || !hasItems(of) {
		return out
	}
	for p := range paths(of) {
		if o.d.Stops() {
			break
		}
		if r := o.d.Resolve(p); is(&r) {
			out.Insert(p)
		}
	}
	return out
}

// each charges every path that is not free. A path is charged once, however many managers lost or gained it. The owner of a
// container decides about its contents, so contents that the container's verbs do not cover are charged as well.
func (o *owners) each(of *smdpath.Set, free func(smdpath.Path) bool) {
	for p := range paths(of) {
		if o.d.Stops() {
			return
		}
		if free(p) {
			continue
		}
		r := o.d.Resolve(p)
		o.charge(r.Scope)
		switch {
		case r.Missing:
		case r.Container && r.Field:
			o.chargeUnowned(p, r.Scope, true)
		case r.KeyField:
			// An item whose keys have no owner is removed, even if managers own the rest of the item.
			item := o.d.Resolve(r.Owner(p))
			o.charge(item.Scope)
			o.chargeWithin(item.Scope, item.Old)
		default:
			o.chargeWithin(r.Scope, r.Old)
		}
	}
}

func (o *owners) charge(s walk.Scope) {
	if key := o.identity(&s); !o.charged[key] {
		o.charged[key] = true
		o.d.Charge(s, change.Ownership)
	}
}

// lossIsFree reports whether a manager loses a path without a charge. after has the paths that the manager still owns. gone is the part of its
// losses whose values changed.
//
// A manager that owns an item's own entry keeps the item when another manager applies without it. So the loss of that entry is free only
// if the manager loses everything in the item, one of the lost values changed, and an Update manager still keeps the item. A manager that
// applies does not count there: it may have gained the item without having it in its applied configuration.
func (o *owners) lossIsFree(who manager, p smdpath.Path, after, gone *smdpath.Set) bool {
	if o.isMerged(who, p) {
		return true
	}
	r := o.d.Resolve(p)
	switch {
	case r.Changed, r.ByServer:
		return true
	case r.ChangedAbove:
		// The version of the entry is not known. The changed value above may be the one that the path names there, so the API server
		// removes its owner.
		return !o.d.Kind.Knows(o.was.entry(who).wroteIn)
	case r.Own():
		item := r.Owner(p)
		return who.operation == operationApply && isItem(item) && !hasBelow(after, item) && hasBelow(gone, item) && o.hasItem(o.keeps(), item)
	}
	return false
}

// gainIsFree reports whether a manager gains a path without a charge. before has the paths that the manager owned. solid has the paths that
// it gains, except own entries and keys.
//
// A manager that owns an item's own entry deletes the item by applying without it, if no other manager owns it. So the gain of that entry
// is free only if something in the item is charged, and another manager owned the item before and still owns it.
func (o *owners) gainIsFree(who manager, p smdpath.Path, before, solid *smdpath.Set) bool {
	r := o.d.Resolve(p)
	switch {
	case r.Changed:
		return true
	case o.isBucket(who):
		return o.heldByVanished(who.version).Has(p)
	case who.operation == operationApply:
		item := r.Owner(p)
		return r.Own() && isItem(item) && !hasBelow(before, item) && hasBelow(solid, item) && o.hasItem(o.holds(), item)
	case who.name == beforeFirstApplyOwner:
		return len(o.was.entries) == 0
	}
	return false
}

// hasItems reports whether a set has an item or something in one.
func hasItems(set *smdpath.Set) bool {
	for p := range paths(set) {
		if slices.ContainsFunc(p, func(e smdpath.PathElement) bool { return e.Key != nil }) {
			return true
		}
	}
	return false
}

func isItem(p smdpath.Path) bool { return len(p) > 0 && p[len(p)-1].Key != nil }

// capped reports whether the API server had more Update managers than it keeps, so that it merged some.
func (o *owners) capped() bool {
	if o.was.updates < maxUpdateManagers || o.is.updates < maxUpdateManagers {
		return false
	}
	// It merges only as many as necessary: one to make room for the manager of the request, and one for the bucket.
	return len(o.vanished) <= o.was.updates-maxUpdateManagers+2
}

// isBucket reports whether a manager is a bucket, into which the API server merges the oldest Update managers of a version. If a manager
// owns the annotation of client-side apply, no gain of the bucket is free, because that manager will be merged into a bucket too.
func (o *owners) isBucket(who manager) bool {
	return who.name == ancientManager && who.operation == operationUpdate && o.capped() && len(o.is.upgraded()) == 0
}

// isMerged reports whether the API server moved a path from a manager to the bucket.
func (o *owners) isMerged(who manager, p smdpath.Path) bool {
	return who.operation == operationUpdate && !o.is.has(who) && o.capped() && o.ancient(who.version).Has(p)
}

// ancient returns the paths that the bucket of a version owns.
func (o *owners) ancient(version string) *smdpath.Set {
	return o.is.fields(manager{name: ancientManager, operation: operationUpdate, version: version})
}

// heldByVanished returns the paths that the vanished managers of a version owned.
func (o *owners) heldByVanished(version string) *smdpath.Set {
	out, known := o.merged[version]
	if !known {
		var sets []*smdpath.Set
		for _, who := range o.vanished {
			if who.version == version {
				sets = append(sets, o.was.fields(who))
			}
		}
		if o.merged == nil {
			o.merged = map[string]*smdpath.Set{}
		}
		out = union(sets)
		o.merged[version] = out
	}
	return out
}

package owners

import (
	"strings"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// What the API server does to owners by itself is free.

// droppedByServer reports whether the API server removed the entry of a manager. It does so with each write through another API group
// than that of the entry (Events have two groups), because it cannot convert between groups. A request that changes no value is charged
// nevertheless, so that the marker alone cannot remove an owner.
func (o *owners) droppedByServer(who manager) bool {
	return o.written && o.version != "" && o.was.has(who) && !o.is.has(who) && groupOf(o.was.entry(who).wroteIn) != groupOf(o.version)
}

// groupOf returns the group of an apiVersion.
func groupOf(apiVersion string) string {
	at := max(strings.IndexByte(apiVersion, '/'), 0)
	return apiVersion[:at]
}

// reconciled is split for an entry as the API server reads it after a schema made a list or map atomic: the whole value in place of its
// parts.
func (o *owners) reconciled(e *managedEntry) (here, other *smdpath.Set) {
	if e == nil {
		return nothing, nothing
	}
	all, kind := e.set(), o.d.Kind.In(e.wroteIn)
	if kind == nil {
		kind = o.d.Kind
	}
	// Only the type of the object counts.
	object, err := kind.Type().FromUnstructured(map[string]any{})
	if err != nil {
		return o.splitSet(e, all)
	}
	if whole, err := typed.ReconcileFieldSetWithSchema(all, object); err == nil && whole != nil {
		all = whole
	}
	return o.splitSet(e, all)
}

// capped reports whether the API server had more Update managers than it keeps, so that it merged some.
func (o *owners) capped() bool {
	if o.was.updates < maxUpdateManagers || o.is.updates < maxUpdateManagers {
		return false
	}
	// It merges only as many as necessary: one to make room for the manager of the request, and one for the bucket.
	return len(o.vanished) <= o.was.updates-maxUpdateManagers+2
}

// isBucket reports whether a manager is a bucket, into which the API server merges the oldest Update managers of a version.
func (o *owners) isBucket(who manager) bool {
	return who.name == ancientManager && who.operation == operationUpdate && o.capped()
}

// isMerged reports whether the API server moved a path from a manager to the bucket of its version.
func (o *owners) isMerged(who manager, p smdpath.Path) bool {
	return who.operation == operationUpdate && !o.is.has(who) && o.capped() && o.bucket(who.version).Has(p)
}

func (o *owners) bucket(version string) *smdpath.Set {
	return o.is.fields(manager{name: ancientManager, operation: operationUpdate, version: version})
}

// vanished are the managers of a version that a merge removed, all or only those that apply.
type vanished struct {
	version  string
	appliers bool
}

// ownedByVanished returns the paths that the vanished managers of a version owned, or those of the managers among them that apply.
func (o *owners) ownedByVanished(version string, appliers bool) *smdpath.Set {
	by := vanished{version, appliers}
	if out := o.merged[by]; out != nil {
		return out
	}
	var sets []*smdpath.Set
	for _, who := range o.vanished {
		if who.version == version && (!appliers || o.was.applies(who)) {
			sets = append(sets, o.was.fields(who))
		}
	}
	o.merged[by] = union(sets)
	return o.merged[by]
}

// chargeBarriersOf charges the barriers of what becomes an applier's by a merge, except of what an applier owned before.
func (o *owners) chargeBarriersOf(bucket manager, owns *smdpath.Set) {
	applied := o.ownedByVanished(bucket.version, true)
	for p := range paths(owns) {
		if o.d.Stops() {
			return
		}
		if r := o.d.Resolve(p); !applied.Has(p) {
			o.chargeBarriersAt(r.Place, r.Old)
		}
	}
}

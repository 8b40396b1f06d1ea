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

// reconciled returns the paths of an entry as the API server reads it after a schema made a list or map atomic: the whole value in place of its
// parts.
func (o *owners) reconciled(e *managedEntry) *smdpath.Set {
	all, kind := e.set(), o.d.Kind
	if e != nil {
		if their := kind.In(e.wroteIn); their != nil {
			kind = their
		}
	}
	// Only the type of the object counts.
	if object, err := kind.Type().FromUnstructured(map[string]any{}); err == nil {
		if whole, err := typed.ReconcileFieldSetWithSchema(all, object); err == nil && whole != nil {
			return whole
		}
	}
	return all
}

// isCapped reports whether the API server had more Update managers than it keeps, so that it merged some. It merges only as many as necessary:
// one to make room for the manager of the request, and one for the bucket.
func (o *owners) isCapped() bool {
	return min(o.was.updates(), o.is.updates()) >= maxUpdateManagers && len(o.vanished) <= o.was.updates()-maxUpdateManagers+2
}

// isBucket reports whether a manager is a bucket, into which the API server merges the oldest Update managers of a version.
func (o *owners) isBucket(who manager) bool {
	return who.name == ancientManager && who.operation == operationUpdate && o.capped
}

// mergedFrom returns the paths that the API server moved from a manager to the bucket of its version.
func (o *owners) mergedFrom(who manager) *smdpath.Set {
	if who.operation != operationUpdate || o.is.has(who) || !o.capped {
		return nothing
	}
	return o.is.entry(manager{name: ancientManager, operation: operationUpdate, version: who.version}).set()
}

// mergedInto returns the paths that the API server may have moved into a manager: what managers owned that it removed, all or only those that
// apply.
func (o *owners) mergedInto(bucket manager, appliers bool) *smdpath.Set {
	if !o.isBucket(bucket) {
		return nothing
	}
	var sets []*smdpath.Set
	for _, who := range o.vanished {
		if who.version == bucket.version && (!appliers || o.was.applies(who)) {
			sets = append(sets, o.was.entry(who).set())
		}
	}
	return union(sets)
}

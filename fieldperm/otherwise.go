package fieldperm

import (
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/verbs"
)

// chargeOtherwise charges a path of an entry of another version as a write of it through that version: there it may be the name of
// something that has another name here. An API server gives such an entry nothing by itself. guardedOnly leaves out what no barrier guards.
func (o *owners) chargeOtherwise(p fieldpath.Path, wroteIn string, guardedOnly bool) {
	d := o.d
	kind := d.kind.In(wroteIn)
	if kind == nil {
		// Nobody knows what it names, and an API server drops it with every write.
		if !guardedOnly {
			o.chargeAll()
		}
		return
	}
	if kind.Lossy() && !guardedOnly {
		o.chargeAll()
	}
	var none rawjson.Value
	at := waypoint{scope: d.enterRoot(kind, none, none), above: kind.Root}
	for i := 0; i < len(p) && !at.end; i++ {
		at = d.step(at, p, i)
	}
	if !guardedOnly || at.scope.barred() {
		o.charge(at.scope)
	}
	if n := at.scope.node; (n.Map() != nil || n.List() != nil) && d.mayBarWithin(at.scope) {
		// What it has in it is known under the names of this version only.
		o.chargeWithin(d.root, d.old)
	}
	if p[0].FieldName == nil || kind.Lossy() || kind.MayHide(*p[0].FieldName) {
		for _, v := range kind.HiddenBarriers(d.uncovered) {
			o.charge(scope{line: line{chain: []verbs.Verb{v}}})
		}
	}
}

// chargeAll charges the whole object, and all that is guarded in it.
func (o *owners) chargeAll() {
	o.charge(o.d.root)
	o.chargeWithin(o.d.root, o.d.old)
}

// droppedByServer reports whether an API server took away the entry of a manager: it does so with each write through another API
// group than that of the entry (Events have two), for it has no conversion between the groups. What changes no value is
// charged all the same, so that the marker alone takes no owner away.
func (o *owners) droppedByServer(who manager) bool {
	return o.written && o.version != "" && o.was.has(who) && !o.is.has(who) && groupOf(o.was.entry(who).wroteIn) != groupOf(o.version)
}

// groupOf returns the group of an apiVersion.
func groupOf(apiVersion string) string {
	at := max(strings.IndexByte(apiVersion, '/'), 0)
	return apiVersion[:at]
}

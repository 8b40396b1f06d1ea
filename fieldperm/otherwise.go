package fieldperm

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// chargeOtherwise charges a path of an entry of another version as a write of it through that version: there it may be the name of
// something that has another name here. kind is nil if that version is not known. An API server gives such an entry nothing by itself. guardedOnly leaves out what no barrier guards.
func (o *owners) chargeOtherwise(p fieldpath.Path, kind *schema.Kind, guardedOnly bool) {
	d := o.d
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
	s := o.scopeIn(kind, p)
	if !guardedOnly || s.barred() {
		o.charge(s)
	}
	if (s.node.Map() != nil || s.node.List() != nil) && d.mayBarWithin(s) {
		// What it has in it is known under the names of this version only.
		o.chargeWithin(d.root, d.old)
	}
	if kind.MayHide(s.path.Top()) {
		for _, v := range kind.HiddenBarriers(d.uncoveredAt(s.path)) {
			o.charge(scope{line: line{chain: []verbs.Verb{v}}})
		}
	}
}

// scopeIn returns where a path leads in another version, of which no values are known.
func (o *owners) scopeIn(kind *schema.Kind, p fieldpath.Path) scope {
	var none rawjson.Value
	at := waypoint{scope: o.d.enterRoot(kind, none, none), above: kind.Root}
	for i := 0; i < len(p) && !at.end; i++ {
		at = o.d.step(at, p, i)
	}
	return at.scope
}

// chargeNamesake charges the barrier of what has the same path in another version, which lost its owner, if nothing here has that barrier.
func (o *owners) chargeNamesake(p fieldpath.Path, kind *schema.Kind, here scope) {
	if s := o.scopeIn(kind, p); s.barrier > 0 && !slices.Contains(here.chain, s.chain[s.barrier]) {
		o.charge(s)
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

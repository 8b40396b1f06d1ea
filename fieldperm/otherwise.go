package fieldperm

import (
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// What a path of managedFields means in another version depends on how the two are converted, which only some kinds declare. A path is
// read in the names of the object's version if it leads to the same field in both. What else an entry of another version names is known
// by the schema of that version alone, without values.

// split divides what a manager owns into paths that mean the same in the object's version, and others. Of a version that nobody
// knows, all count as the same.
func (o *owners) split(in *managedFields, who manager) (here, otherwise *fieldpath.Set) {
	all, e := in.fields(who), in.entry(who)
	if e == nil || o.hasNames(e) || o.d.kind.In(e.wroteIn) == nil {
		return all, fieldpath.NewSet()
	}
	here, otherwise = fieldpath.NewSet(), fieldpath.NewSet()
	all.Iterate(func(p fieldpath.Path) {
		into := otherwise
		if o.d.kind.IsAlike(e.wroteIn, p) {
			into = here
		}
		into.Insert(slices.Clone(p))
	})
	return here, otherwise
}

// hasNames reports whether each path of an entry means the same in the object's version.
func (o *owners) hasNames(e *managedEntry) bool {
	return e.wroteIn == o.version || o.d.kind.IsAllAlike(e.wroteIn)
}

// inNames returns what an entry owns in the names of the object's version.
func (o *owners) inNames(e *managedEntry) *fieldpath.Set {
	set := e.set()
	if o.hasNames(e) {
		return set
	}
	here := fieldpath.NewSet()
	set.Iterate(func(p fieldpath.Path) {
		if o.d.kind.IsAlike(e.wroteIn, p) {
			here.Insert(slices.Clone(p))
		}
	})
	return here
}

// gainsOtherwise reports whether a manager gains something in an entry of another version, or whose version another one becomes. An API
// server does so where it merges old entries alone.
func (o *owners) gainsOtherwise(who manager, here, otherwise *fieldpath.Set) bool {
	e := o.is.entry(who)
	if e == nil || e.wroteIn == o.version || here.Empty() && otherwise.Empty() && !o.versionChanged(who) {
		return false
	}
	return !o.isBucket(who) || !here.Union(otherwise).Difference(o.heldByVanished(who.version)).Empty()
}

// chargeLostOtherwise charges what a manager no longer owns in the names of another version. An API server takes an owner away where a
// value changes, which is here or next to what has the name here. Then what is guarded there is charged, and
// everything if no value changed.
func (o *owners) chargeLostOtherwise(who manager, lost *fieldpath.Set) {
	if lost.Empty() {
		return
	}
	their := o.d.kind.In(o.was.entry(who).wroteIn)
	lost.Iterate(func(p fieldpath.Path) {
		if o.d.stops() || o.isMerged(who, p) {
			return
		}
		if o.d.changesNear(p) {
			o.chargeGuarded(p, their)
			return
		}
		o.chargeAll()
	})
}

// changesNear reports whether a value changed at a path, in it, or nearest above it where it leads nowhere.
func (d *differ) changesNear(p fieldpath.Path) bool {
	r := d.resolve(p)
	if !r.container {
		return r.changed || r.changedAbove
	}
	return d.changedValue(r.scope.node, r.value, r.new)
}

// chargeGuarded charges the barriers at a place of another version and in it. Without the owner of its keys an item is not kept.
func (o *owners) chargeGuarded(p fieldpath.Path, their *schema.Kind) {
	if isKeyOf(p) {
		p = p[:len(p)-1]
	}
	s := o.scopeIn(their, p)
	if s.barred() {
		o.charge(s)
	}
	if at := (place{kind: their, node: s.node, inStatus: s.inStatus}); !o.guarded[at] {
		o.guarded[at] = true
		o.chargeVerbs(s.node.BarredWithin(o.d.uncoveredAt(&s)))
	}
	top := s.path.Top()
	if at := (place{kind: their, top: top, inStatus: s.inStatus}); !o.guarded[at] && their.MayHide(top) {
		o.guarded[at] = true
		o.chargeVerbs(their.HiddenBarriers(o.d.uncoveredAt(&s)))
	}
}

// place is a node of another version, or a top-level field in which it may hide something.
type place struct {
	kind     *schema.Kind
	node     *schema.Node
	top      string
	inStatus bool
}

// chargeVerbs charges barriers of which the place is not known.
func (o *owners) chargeVerbs(barriers []verbs.Verb) {
	for _, v := range barriers {
		o.charge(scope{line: line{chain: []verbs.Verb{v}}})
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

// chargeAll charges the whole object, and all that is guarded in it.
func (o *owners) chargeAll() {
	o.charge(o.d.root)
	o.chargeWithin(o.d.root, o.d.old)
	o.chargeWithin(o.d.root, o.d.new)
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

package fieldperm

import (
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
	if e == nil || !o.d.kind.Knows(e.wroteIn) {
		return all, fieldpath.NewSet()
	}
	here = o.inNames(e)
	if here == all {
		return all, fieldpath.NewSet()
	}
	return here, all.Difference(here)
}

// theirs returns the kind in the version that a manager wrote in before, nil if that is not known.
func (o *owners) theirs(who manager) *schema.Kind {
	if e := o.was.entry(who); e != nil {
		return o.d.kind.In(e.wroteIn)
	}
	return nil
}

// inNames returns what an entry owns in the names of the object's version.
func (o *owners) inNames(e *managedEntry) *fieldpath.Set {
	if e.wroteIn == o.version {
		return e.set()
	}
	return o.d.kind.Alike(e.wroteIn, e.set())
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
	their := o.theirs(who)
	lost.Iterate(func(p fieldpath.Path) {
		if o.d.stops() || o.isMerged(who, p) {
			return
		}
		switch {
		case !o.d.changesNear(p):
			o.chargeAll()
		case their == nil:
			// A version that is not served has no verbs.
			o.chargeBarriers()
		default:
			o.chargeGuarded(p, their)
		}
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
	within, uncovered := theirNode{s.node, s.inStatus}, o.d.uncoveredAt(&s)
	if !o.guarded[within] {
		o.guarded[within] = true
		o.chargeVerbs(s.node.BarredWithin(uncovered))
	}
	top := theirField{their, s.path.Top(), s.inStatus}
	if !o.hidden[top] && their.MayHide(top.name) {
		o.hidden[top] = true
		o.chargeVerbs(their.HiddenBarriers(uncovered))
	}
}

// theirNode is a place in another version.
type theirNode struct {
	node     *schema.Node
	inStatus bool
}

// theirField is a top-level field of another version.
type theirField struct {
	kind     *schema.Kind
	name     string
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
	o.chargeBarriers()
}

// chargeBarriers charges all that is guarded in the object.
func (o *owners) chargeBarriers() {
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

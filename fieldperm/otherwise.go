package fieldperm

import (
	"strconv"
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
		case !o.changesNear(p, o.was.entry(who).wroteIn):
			o.chargeAll(who)
		case their == nil:
			// A version that is not served has no verbs.
			o.chargeBarriers()
		default:
			o.chargeGuarded(p, their)
		}
	})
}

// changesNear reports whether a value changed at a path of another version, in it, or nearest above it where it leads nowhere: one that
// the other version may call by that path, because it has no other name for it.
func (o *owners) changesNear(p fieldpath.Path, version string) bool {
	d := o.d
	r := d.resolve(p)
	switch {
	case r.container:
		return d.changedValue(r.scope.node, r.old, r.new)
	case !r.changedAbove:
		return r.changed
	}
	n := len(d.trail.points)
	for n > 1 && (d.trail.points[n-1].end || d.trail.points[n-1].old.IsAbsent() && d.trail.points[n-1].new.IsAbsent()) {
		n--
	}
	at := d.trail.points[n-1]
	return d.differs(at.scope.node, at.old, at.new, &counterpart{version, p[:n]})
}

// counterpart is a path in another version.
type counterpart struct {
	version string
	path    fieldpath.Path
}

// below is that of a member, nil of nil.
func (c *counterpart) below(name []byte) *counterpart {
	if c == nil {
		return nil
	}
	member := string(name)
	return &counterpart{c.version, append(c.path[:len(c.path):len(c.path)], fieldpath.PathElement{FieldName: &member})}
}

// chargeGuarded charges the barriers at a place of another version and in it. Without the owner of its keys an item is not kept.
func (o *owners) chargeGuarded(p fieldpath.Path, their *schema.Kind) {
	isShell := isKey(p)
	if isShell {
		p = p[:len(p)-1]
	}
	s := o.scopeIn(their, p)
	m, l := s.node.Map(), s.node.List()
	// Who owns a container keeps what nobody owns in it. An API server takes that away with the container alone.
	if isShell = isShell || m != nil && !m.Atomic() || l != nil && !l.Atomic(); isShell || s.barred() {
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
	return o.d.follow(kind, rawjson.Value{}, p).scope
}

// follow returns where a path leads in an object that is compared with nothing.
func (d *differ) follow(kind *schema.Kind, object rawjson.Value, p fieldpath.Path) waypoint {
	at := waypoint{scope: d.enterRoot(kind, rawjson.Value{}, object), new: object, above: kind.Root}
	for i := 0; i < len(p) && !at.end; i++ {
		at = d.step(at, p, i)
	}
	return at
}

// chargeAll charges the whole object for the entry of a manager.
func (o *owners) chargeAll(who manager) {
	e := o.is.entry(who)
	if e == nil {
		e = o.was.entry(who)
	}
	o.chargeObject(strconv.Quote(who.name) + " in " + e.wroteIn)
}

// chargeObject charges the whole object, and every barrier of the kind. entry says because of whom, "" if of nobody in particular.
func (o *owners) chargeObject(entry string) {
	charged := len(o.d.out)
	o.charge(o.d.root)
	o.chargeBarriers()
	for i := range o.d.out[charged:] {
		o.d.out[charged+i].Entry = entry
	}
}

// chargeBarriers charges every barrier of the kind: what is guarded may be absent yet.
func (o *owners) chargeBarriers() {
	if o.barriers {
		return
	}
	o.barriers = true
	o.chargeVerbs(o.d.kind.Root.BarredWithin(o.d.uncovered))
	if status := o.scopeIn(o.d.kind, statusOf); status.inStatus {
		if status.barred() {
			o.charge(status)
		}
		o.chargeVerbs(status.node.BarredWithin(o.d.inStatus))
	}
}

var statusOf = fieldpath.MakePathOrDie("status")

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

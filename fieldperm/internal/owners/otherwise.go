package owners

import (
	"strconv"
	"strings"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/walk"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// The meaning of a managedFields path in another version depends on the conversion between the versions, which only some kinds declare. A
// path is read in the names of the object's version if it leads to the same field in both versions. All other paths of an entry in
// another version are read with the schema of that version only, without values.

// split divides the paths that a manager owns into those that mean the same in the object's version, and the others. If the version of
// the entry is not known, all paths count as the same.
func (o *owners) split(in *managedFields, who manager) (here, otherwise *smdpath.Set) {
	all, e := in.fields(who), in.entry(who)
	if e == nil || !o.d.Kind.Knows(e.wroteIn) {
		return all, smdpath.NewSet()
	}
	here = o.inNames(e)
	if here == all {
		return all, smdpath.NewSet()
	}
	return here, all.Difference(here)
}

// theirs returns the kind in the version of the manager's entry, of the old one if there are two. It is nil if that version is not known.
func (o *owners) theirs(who manager) *schema.Kind {
	e := o.was.entry(who)
	if e == nil {
		e = o.is.entry(who)
	}
	return o.d.Kind.In(e.wroteIn)
}

// inNames returns the paths of an entry in the names of the object's version.
func (o *owners) inNames(e *managedEntry) *smdpath.Set {
	if e.wroteIn == o.version {
		return e.set()
	}
	return o.d.Kind.Alike(e.wroteIn, e.set())
}

// gainsOtherwise reports whether a manager gains something in an entry of another version, or whether the version of its entry changes to
// another one. An API server does so only when it merges old entries.
func (o *owners) gainsOtherwise(who manager, here, otherwise *smdpath.Set) bool {
	e := o.is.entry(who)
	if e == nil || e.wroteIn == o.version || here.Empty() && otherwise.Empty() && !o.versionChanged(who) {
		return false
	}
	return !o.isBucket(who) || !here.Union(otherwise).Difference(o.heldByVanished(who.version)).Empty()
}

// chargeLostOtherwise charges what a manager no longer owns in the names of another version. An API server takes an owner away where a
// value changes: at this path, or at the nearest value that has a name in the object's version. If a value changed there, the barriers at
// the path are charged; if no value changed, the whole object.
func (o *owners) chargeLostOtherwise(who manager, lost *smdpath.Set) {
	if lost.Empty() {
		return
	}
	their := o.theirs(who)
	for p := range paths(lost) {
		if o.d.Stops() {
			return
		}
		switch {
		case o.isMerged(who, p):
		case !o.d.ChangesNear(p, o.was.entry(who).wroteIn):
			o.chargeAll(who)
		case their == nil:
			// A version that is not served has no verbs.
			o.chargeBarriers()
		default:
			o.chargeGuarded(p, their)
		}
	}
}

// chargeGuarded charges the barriers at and below a path of another version. If the path is a key, the item of that key counts, because
// an item is removed when its keys have no owner.
func (o *owners) chargeGuarded(p smdpath.Path, their *schema.Kind) {
	isShell := walk.IsKey(p)
	if isShell {
		p = p[:len(p)-1]
	}
	s := o.scopeIn(their, p)
	m, l := s.Node.Map(), s.Node.List()
	// The owner of a container keeps the parts that have no owner. An API server removes those parts only together with the container.
	if isShell = isShell || m != nil && !m.Atomic() || l != nil && !l.Atomic(); isShell || s.Barred() {
		o.charge(s)
	}
	within, uncovered := theirNode{s.Node, s.InStatus}, o.d.UncoveredAt(&s)
	if !o.guarded[within] {
		o.guarded[within] = true
		o.chargeVerbs(s.Node.BarredWithin(uncovered))
	}
	top := theirField{their, s.Path.Top(), s.InStatus}
	if !o.hidden[top] && len(their.HiddenBarriers(uncovered)) > 0 {
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

// chargeVerbs charges barriers whose place is not known.
func (o *owners) chargeVerbs(barriers []verbs.Verb) {
	for _, v := range barriers {
		o.charge(walk.ScopeOf(&change.Requirement{Chain: []verbs.Verb{v}}))
	}
}

// scopeIn returns the scope that a path leads to in another version. The values of that version are not known.
func (o *owners) scopeIn(kind *schema.Kind, p smdpath.Path) walk.Scope {
	return o.d.Follow(kind, rawjson.Value{}, p).Scope
}

// chargeAll charges the whole object because of the entry of a manager.
func (o *owners) chargeAll(who manager) {
	e := o.is.entry(who)
	if e == nil {
		e = o.was.entry(who)
	}
	o.chargeObject(strconv.Quote(who.name) + " in " + e.wroteIn)
}

// chargeObject charges the whole object and every barrier of the kind. entry names the entry that is the reason, "" if there is no single
// one.
func (o *owners) chargeObject(entry string) {
	charged := len(o.d.Out)
	o.charge(o.d.Root)
	o.chargeBarriers()
	for i := range o.d.Out[charged:] {
		o.d.Out[charged+i].Entry = entry
	}
}

// chargeBarriers charges every barrier of the kind, because a guarded field may not exist yet.
func (o *owners) chargeBarriers() {
	if o.barriers {
		return
	}
	o.barriers = true
	o.chargeVerbs(o.d.Kind.Root.BarredWithin(o.d.Uncovered))
	if status := o.scopeIn(o.d.Kind, statusOf); status.InStatus {
		if status.Barred() {
			o.charge(status)
		}
		o.chargeVerbs(status.Node.BarredWithin(o.d.InStatus))
	}
}

var statusOf = smdpath.MakePathOrDie("status")

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

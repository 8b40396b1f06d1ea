package owners

import (
	"bytes"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// onlyOwnTime reports whether at most the time of one entry changed, and the entry owns a change: that is all that nearly all updates change in
// the list. The other entries need not be read.
func onlyOwnTime(d *charge.Charger) bool {
	if !d.Owned.Old.IsList() || !d.Owned.New.IsList() {
		return false
	}
	touched := false
	x, y := d.Owned.Old.Items(), d.Owned.New.Items()
	for {
		more, others := x.Next(), y.Next()
		if !more || !others {
			return more == others
		}
		if d.Same.Same(x.Value(), y.Value()) {
			continue
		}
		is := readManagedEntry(y.Value())
		if !differInTime(d, x.Value(), y.Value()) { // Their spelling differs, or more.
			was := readManagedEntry(x.Value())
			if was.faulty || is.faulty || was.manager != is.manager || was.wroteIn != is.wroteIn || !d.Same.Equal(was.raw, is.raw) {
				return false
			}
			if was.time == is.time {
				continue
			}
		}
		if touched || is.isAged() || !ownsChange(d, is) {
			return false
		}
		touched = true
	}
}

// differInTime reports whether two entries have the same members but for the text of their time.
func differInTime(d *charge.Charger, was, is rawjson.Value) bool {
	x, y := was.Members(), is.Members()
	for x.Next() {
		if !y.Next() || !bytes.Equal(x.Name().Raw(), y.Name().Raw()) {
			return false
		}
		a, b := x.Value(), y.Value()
		if isTime := x.Name().Is("time") && a.Kind() == rawjson.String && b.Kind() == rawjson.String; !isTime && !d.Same.Same(a, b) {
			return false
		}
	}
	return !y.Next()
}

// timesAreFree reports whether the API server may have changed the times that changed. It sets three times: that of the entry that the
// request gave fields to, which then owns a changed value; that of an applier whose entry changed; and that of the bucket into which it
// merges old entries. It removes none: if a write of the Scale leaves two entries of one manager, it loses one without a time, with
// everything that it owns.
func (o *owners) timesAreFree() bool {
	touched := 0
	for _, who := range o.is.order {
		was, is := o.was.entry(who), o.is.entry(who)
		switch {
		case was == nil || was.time == is.time:
		case is.isAged():
			return false
		case who.operation == operationApply && o.changed[who], who.operation == operationUpdate && who.name == ancientManager && len(o.vanished) > 0 && o.capped:
		default:
			if touched++; touched > 1 || !ownsChange(o.d, is) {
				return false
			}
		}
	}
	return true
}

// ownsChange reports whether an entry owns a value that changed in the request, or may have applied another order of items. The order of
// items has no owner. In most requests it owns one of the first changed scalars, which is seen without reading the entry.
func ownsChange(d *charge.Charger, e *managedEntry) bool {
	if slices.ContainsFunc(d.Leaves(), func(p fieldpath.Path) bool {
		part, whole := fieldsAt(e.raw, p)
		return whole && part.IsObject() && part.IsEmpty()
	}) {
		return true
	}
	if e.operation == operationApply && slices.ContainsFunc(d.Out, func(r change.Requirement) bool { return r.Operation == change.Reordered }) {
		return true
	}
	for p := range paths(e.set()) {
		if d.Stops() {
			break
		}
		if d.Resolve(p).Changed {
			return true
		}
	}
	return false
}

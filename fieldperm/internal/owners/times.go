package owners

import (
	"bytes"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/fieldperm/internal/charge"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// onlyOneTime reports whether at most the time of one entry changed, as with most updates. It returns that entry, absent if no time
// changed. The API server changes such a time by itself, so the other entries need not be compared.
func onlyOneTime(d *charge.Charger) (touched rawjson.Value, only bool) {
	if !d.Owned.Old.IsList() || !d.Owned.New.IsList() {
		return touched, false
	}
	x, y := d.Owned.Old.Items(), d.Owned.New.Items()
	for {
		more, others := x.Next(), y.Next()
		if !more || !others {
			return touched, more == others
		}
		if d.Same.Same(x.Value(), y.Value()) {
			continue
		}
		was, ok1 := entryMembers(x.Value())
		is, ok2 := entryMembers(y.Value())
		if !ok1 || !ok2 {
			// Entries that are not understood may be equal in another spelling.
			if d.Same.Equal(x.Value(), y.Value()) {
				continue
			}
			return touched, false
		}
		respelled := true
		for i := range was {
			equal := d.Same.Equal(was[i], is[i])
			respelled = respelled && equal
			// An API server leaves out empty strings.
			if i != entryTime && !equal && (i == entryFields || was[i].Text() != is[i].Text()) {
				return touched, false
			}
		}
		if respelled && d.Same.Equal(x.Value(), y.Value()) {
			continue
		}
		if d.Same.Equal(was[entryTime], is[entryTime]) {
			continue // An API server leaves out such members, for example null.
		}
		if !touched.IsAbsent() {
			return touched, false
		}
		touched = y.Value()
	}
}

// ages reports whether the time of an entry is gone, or was set to a value that counts as no time. If a write of the Scale leaves two
// entries of one manager, the API server keeps the later one. An entry without a time is then lost, with everything that it owns.
func (o *owners) ages() bool {
	return slices.ContainsFunc(o.is.order, func(who manager) bool {
		was, is := o.was.entry(who), o.is.entry(who)
		return was != nil && was.time != is.time && is.isAged()
	})
}

// timesAreFree reports whether the API server may have changed the times that changed. It sets three times: that of the entry that the
// request gave fields to, which then owns a changed value; that of an applier whose entry changed; and that of the bucket into which it
// merges old entries.
func (o *owners) timesAreFree() bool {
	touched := 0
	for _, who := range o.is.order {
		was, is := o.was.of[who], o.is.of[who]
		for i := range min(len(was), len(is)) {
			e := &o.is.entries[is[i]]
			switch {
			case o.d.Stops():
				return false
			case o.was.entries[was[i]].time == e.time,
				who.operation == operationApply && o.changed[who],
				who.operation == operationUpdate && who.name == ancientManager && len(o.vanished) > 0 && o.capped():
				continue
			}
			if touched++; touched > 1 || !ownsChange(o.d, e) {
				return false
			}
		}
	}
	return true
}

// ownsChange reports whether an entry owns a value that changed in the request, or may have applied another order of items. The order of
// items has no owner.
func ownsChange(d *charge.Charger, e *managedEntry) bool {
	if ownsLeaf(d, e.raw) {
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

// ownsLeaf reports whether FieldsV1 own one of the remembered scalars. It decodes nothing. If it returns false, the entry may still own a
// change.
func ownsLeaf(d *charge.Charger, fields rawjson.Value) bool {
	for _, p := range d.Leaves() {
		if at := fieldsAt(fields, p); at.IsObject() && at.IsEmpty() {
			return true
		}
	}
	return false
}

// fieldsAt returns the part of FieldsV1 at a path, absent if there is none or the path is not simple. A simple path has only names, and
// items with one key whose value has a single spelling.
func fieldsAt(fields rawjson.Value, p fieldpath.Path) rawjson.Value {
	if p.IsRoot() {
		return fields
	}
	above, step := p.Cut()
	if fields = fieldsAt(fields, above); !fields.IsObject() {
		return rawjson.Value{}
	}
	for m := fields.Members(); m.Next(); {
		if m.Name().Is(".") {
			continue
		}
		if name := m.Name().Bytes(); len(name) > 2 && isElement(name, &step) {
			return m.Value()
		}
	}
	return rawjson.Value{}
}

// isElement reports whether an element of FieldsV1 names the same place as the step.
func isElement(element []byte, s *fieldpath.Step) bool {
	switch {
	case (s.Kind == fieldpath.StepField || s.Kind == fieldpath.StepKey) && element[0] == 'f':
		return string(element[2:]) == s.Name
	case s.Kind == fieldpath.StepItem && len(s.Keys) == 1 && element[0] == 'k':
		key := s.Keys[0]
		rest, named := bytes.CutPrefix(element, []byte(`k:{"`+key.Name+`":`))
		return named && bytes.IndexByte(key.Value, '\\') < 0 && len(rest) == len(key.Value)+1 && bytes.HasPrefix(rest, key.Value)
	}
	return false
}

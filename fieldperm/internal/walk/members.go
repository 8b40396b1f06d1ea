package walk

import (
	"bytes"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// pair is a part of both objects whose bytes differ, or that is in one object only: a member of an object, or an item of a list.
type pair struct {
	name     []byte // decoded
	old, new rawjson.Value
	// run is the result of comparing the two. A comparison below them continues from it.
	run rawjson.Run
}

// members compares objects key by key over the union of their keys (D1). One side may be absent.
func (d *Differ) members(s Scope, old, new rawjson.Value) {
	charged, passed := len(d.Out), d.passed
	d.eachMember(s, d.changes(old, new))
	// An object that appears with nothing but defaults has no charged parts, but it did appear. So it is charged as a leaf, like an empty
	// one. An object around parts with a role (metadata) is free.
	if len(d.Out) == charged && d.passed == passed && old.IsAbsent() && d.Err == nil && !(d.Create && string(s.Node.Default()) == "{}") {
		d.Charge(s, change.Added)
	}
}

// membersInStep compares objects that have the same names in the same order. It reports false, and charges nothing, if the names differ
// or a name occurs twice.
func (d *Differ) membersInStep(s Scope, old, new rawjson.Value) bool {
	begin := len(d.changed)
	var names rawjson.Names
	x, y := old.Members(), new.Members()
	for {
		more, others := x.Next(), y.Next()
		if !more && !others {
			break
		}
		if more != others || !x.Name().Equal(y.Name()) {
			d.changed = d.changed[:begin]
			return false
		}
		names.Add(x.Name())
		if !d.Same.Same(x.Value(), y.Value()) {
			d.changed = append(d.changed, pair{x.Name().Bytes(), x.Value(), y.Value(), d.Same.Last()})
		}
	}
	if names.MayRepeat() && old.Ambiguous() {
		d.changed = d.changed[:begin]
		return false
	}
	d.eachMember(s, d.sorted(begin))
	return true
}

// eachMember walks the changes from begin on, and removes them from the stack.
func (d *Differ) eachMember(s Scope, begin int) {
	for i := begin; i < len(d.changed); i++ {
		c := d.changed[i]
		d.Same.Recall(c.run)
		d.Key(s, c.name, c.old, c.new, walk)
	}
	d.changed = d.changed[:begin]
}

// changes puts the members that may differ between two objects on the stack of changes, in the order of their names, and returns the
// index of the first. A value that is not an object has no members. A name must not occur twice on either side.
func (d *Differ) changes(old, new rawjson.Value) int {
	begin := len(d.changed)
	if old.IsObject() && new.IsObject() {
		d.gather(old, new)
	} else {
		for m := old.Members(); m.Next(); {
			d.changed = append(d.changed, pair{name: m.Name().Bytes(), old: m.Value()})
		}
		for m := new.Members(); m.Next(); {
			d.changed = append(d.changed, pair{name: m.Name().Bytes(), new: m.Value()})
		}
	}
	return d.sorted(begin)
}

// sorted sorts the changes from begin on by name.
func (d *Differ) sorted(begin int) int {
	d.changed = d.changed[:begin+merge(d.changed[begin:])]
	return begin
}

// gather walks two objects in step. Where the names differ, only the side with the lesser name advances. In sorted objects this finds the
// added and removed members. If a name appears again further on, merge joins the two changes.
func (d *Differ) gather(old, new rawjson.Value) {
	x, y := old.Members(), new.Members()
	more, others := x.Next(), y.Next()
	// ahead is one member further than x, and behind one further than y, once they have been read.
	var ahead, behind peek
	for more && others {
		if x.Name().Equal(y.Name()) {
			if !d.Same.Same(x.Value(), y.Value()) {
				d.changed = append(d.changed, pair{x.Name().Bytes(), x.Value(), y.Value(), d.Same.Last()})
			}
			more, others = x.Next(), y.Next()
			ahead.seen, behind.seen = false, false
			continue
		}
		// The next member may have the same name, if the names are in the order of a struct's fields.
		removed := ahead.is(x, y.Name())
		added := !removed && behind.is(y, x.Name())
		if removed || !added && x.Name().Compare(y.Name()) < 0 {
			d.changed = append(d.changed, pair{name: x.Name().Bytes(), old: x.Value()})
			more = x.Next()
			ahead.seen = false
		} else {
			d.changed = append(d.changed, pair{name: y.Name().Bytes(), new: y.Value()})
			others = y.Next()
			behind.seen = false
		}
	}
	for ; more; more = x.Next() {
		d.changed = append(d.changed, pair{name: x.Name().Bytes(), old: x.Value()})
	}
	for ; others; others = y.Next() {
		d.changed = append(d.changed, pair{name: y.Name().Bytes(), new: y.Value()})
	}
}

// peek is the member after another one. It is read only once, because a long value may stand between the two.
type peek struct {
	seen, more bool
	name       rawjson.Name
}

// is reports whether the member after m has the name.
func (p *peek) is(m rawjson.Members, name rawjson.Name) bool {
	if !p.seen {
		p.seen, p.more = true, m.Next()
		p.name = m.Name()
	}
	return p.more && p.name.Equal(name)
}

// merge sorts by name, joins two changes of the same name, and returns the number of changes left.
func merge(changes []pair) int {
	if len(changes) < 2 {
		return len(changes)
	}
	slices.SortFunc(changes, func(a, b pair) int { return bytes.Compare(a.name, b.name) })
	n := 0
	for _, c := range changes[1:] {
		if last := &changes[n]; bytes.Equal(last.name, c.name) {
			if c.old.IsAbsent() {
				last.new = c.new
			} else {
				last.old = c.old
			}
			continue
		}
		n++
		changes[n] = c
	}
	return n + 1
}

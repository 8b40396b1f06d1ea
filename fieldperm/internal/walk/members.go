package walk

import (
	"bytes"
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// members compares objects key by key over the union of their keys (D1). One side may be absent.
func (d *Differ) members(s Scope, old, new rawjson.Value) {
	charged, passed, defaults := len(d.Out), d.passed, d.defaults
	around := d.changed
	d.eachMember(s, d.changes(old, new))
	d.leave(around)
	if !old.IsAbsent() || len(d.Out) > charged || s.Path.IsRoot() || d.Err != nil {
		return
	}
	// No part is charged, but the object did appear. It is charged as a leaf, like an empty one, unless the API server wrote all of it, or it is its
	// own default, which may have defaults in it. What has both may mean something that neither has: a NetworkPolicy for all Pods.
	byServer, isDefault := d.passed > passed, d.defaults > defaults
	if byServer == isDefault || isDefault && string(s.Node.Default()) != "{}" {
		d.Charge(s, change.Added)
	}
}

// membersInStep compares objects that have the same names in the same order. It reports false, and charges nothing, if the names differ.
func (d *Differ) membersInStep(s Scope, old, new rawjson.Value) bool {
	around := d.changed
	begin, ok := d.gatherInStep(old, new)
	if ok {
		d.eachMember(s, begin)
	}
	d.leave(around)
	return ok
}

// gatherInStep puts the members that differ on the stack of changes, and returns the index of the first. It reports false if the names
// differ.
func (d *Differ) gatherInStep(old, new rawjson.Value) (int, bool) {
	d.enterLevel(old, rawjson.Value{})
	x, y := old.Members(), new.Members()
	for {
		more, others := x.Next(), y.Next()
		if !more && !others {
			break
		}
		if more != others || !x.Name().Equal(y.Name()) {
			return 0, false
		}
		if !d.Same.Same(x.Value(), y.Value()) {
			d.push(pair{x.Name().Bytes(), x.Value(), y.Value(), d.Same.Last(x.Value(), y.Value())})
		}
	}
	return d.sorted(), true
}

// eachMember walks the changes from begin on, and removes them from the stack.
func (d *Differ) eachMember(s Scope, begin int) {
	for len(d.changed) > begin {
		c := d.pop()
		d.Key(s, c.name, c.old, c.new, walk)
	}
}

// changes puts the members that may differ between two objects on the stack of changes, in the order of their names, and returns the
// index of the first. A value that is not an object has no members.
func (d *Differ) changes(old, new rawjson.Value) int {
	d.enterLevel(old, new)
	if old.IsObject() && new.IsObject() {
		d.gather(old, new)
	} else {
		for m := old.Members(); m.Next(); {
			d.push(pair{name: m.Name().Bytes(), old: m.Value()})
		}
		for m := new.Members(); m.Next(); {
			d.push(pair{name: m.Name().Bytes(), new: m.Value()})
		}
	}
	return d.sorted()
}

// sorted sorts the changes of the level by name, so that the first name is on top, and returns the index of the last.
func (d *Differ) sorted() int {
	level := d.changed[d.level:]
	level = level[:merge(level)]
	slices.Reverse(level)
	d.changed = d.changed[:d.level+len(level)]
	return d.level
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
				d.push(pair{x.Name().Bytes(), x.Value(), y.Value(), d.Same.Last(x.Value(), y.Value())})
			}
			more, others = x.Next(), y.Next()
			ahead.seen, behind.seen = false, false
			continue
		}
		// The next member may have the same name, if the names are in the order of a struct's fields.
		removed := ahead.is(x, y.Name())
		added := !removed && behind.is(y, x.Name())
		if removed || !added && x.Name().Compare(y.Name()) < 0 {
			d.push(pair{name: x.Name().Bytes(), old: x.Value()})
			more = x.Next()
			ahead.seen = false
		} else {
			d.push(pair{name: y.Name().Bytes(), new: y.Value()})
			others = y.Next()
			behind.seen = false
		}
	}
	for ; more; more = x.Next() {
		d.push(pair{name: x.Name().Bytes(), old: x.Value()})
	}
	for ; others; others = y.Next() {
		d.push(pair{name: y.Name().Bytes(), new: y.Value()})
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

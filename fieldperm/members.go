package fieldperm

import (
	"bytes"
	"slices"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// change is a member of an object that is not the same bytes on both sides, or is on one side only.
type change struct {
	name     []byte // decoded
	old, new rawjson.Value
	// run is what the comparison of the two came to: going on below it begins from there.
	run rawjson.Run
}

// members compares objects key by key over the union of their keys (D1). One side may be absent.
func (d *differ) members(s scope, old, new rawjson.Value) {
	charged, passed := len(d.out), d.passed
	d.eachMember(s, d.changes(old, new))
	// Below an object that appears with nothing but defaults nothing was charged, but the object did
	// appear: like an empty one it is a leaf. Only around what has a role (metadata) it is free.
	if len(d.out) == charged && d.passed == passed && old.IsAbsent() && d.err == nil && !(d.create && string(s.node.Default()) == "{}") {
		d.charge(s, Added)
	}
}

// membersInStep compares objects that have the same names in the same order, and reports whether these do,
// and no name occurs twice.
func (d *differ) membersInStep(s scope, old, new rawjson.Value) bool {
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
		if !d.same.Same(x.Value(), y.Value()) {
			d.changed = append(d.changed, change{x.Name().Bytes(), x.Value(), y.Value(), d.same.Last()})
		}
	}
	if names.MayRepeat() && old.Ambiguous() {
		d.changed = d.changed[:begin]
		return false
	}
	d.eachMember(s, d.sorted(begin))
	return true
}

// eachMember goes on below the changes from begin on, and takes them off the stack.
func (d *differ) eachMember(s scope, begin int) {
	for i := begin; i < len(d.changed); i++ {
		c := d.changed[i]
		d.same.Recall(c.run)
		d.key(s, c.name, c.old, c.new, walk)
	}
	d.changed = d.changed[:begin]
}

// changes puts the members that may differ between two objects on the stack of changes, in the order of
// their names, and returns where they begin. What is no object has no members. A name must not occur
// twice on either side.
func (d *differ) changes(old, new rawjson.Value) int {
	begin := len(d.changed)
	if old.IsObject() && new.IsObject() {
		d.gather(old, new)
	} else {
		for m := old.Members(); m.Next(); {
			d.changed = append(d.changed, change{name: m.Name().Bytes(), old: m.Value()})
		}
		for m := new.Members(); m.Next(); {
			d.changed = append(d.changed, change{name: m.Name().Bytes(), new: m.Value()})
		}
	}
	return d.sorted(begin)
}

// sorted puts the changes from begin on in the order of their names.
func (d *differ) sorted(begin int) int {
	d.changed = d.changed[:begin+merge(d.changed[begin:])]
	return begin
}

// gather walks two objects in step. Where the names part, the lesser goes on alone, which finds what was
// added or removed among names that are sorted; one that is met again further on is put together by merge.
func (d *differ) gather(old, new rawjson.Value) {
	x, y := old.Members(), new.Members()
	more, others := x.Next(), y.Next()
	// ahead is one member further than x, behind than y, once they have been looked at.
	var ahead, behind peek
	for more && others {
		if x.Name().Equal(y.Name()) {
			if !d.same.Same(x.Value(), y.Value()) {
				d.changed = append(d.changed, change{x.Name().Bytes(), x.Value(), y.Value(), d.same.Last()})
			}
			more, others = x.Next(), y.Next()
			ahead.seen, behind.seen = false, false
			continue
		}
		// The next may be the one, where names are in the order of a struct's fields.
		removed := ahead.is(x, y.Name())
		added := !removed && behind.is(y, x.Name())
		if removed || !added && x.Name().Compare(y.Name()) < 0 {
			d.changed = append(d.changed, change{name: x.Name().Bytes(), old: x.Value()})
			more = x.Next()
			ahead.seen = false
		} else {
			d.changed = append(d.changed, change{name: y.Name().Bytes(), new: y.Value()})
			others = y.Next()
			behind.seen = false
		}
	}
	for ; more; more = x.Next() {
		d.changed = append(d.changed, change{name: x.Name().Bytes(), old: x.Value()})
	}
	for ; others; others = y.Next() {
		d.changed = append(d.changed, change{name: y.Name().Bytes(), new: y.Value()})
	}
}

// peek is a look at the member after another, taken once: what stands between may be long.
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

// merge sorts by name, makes one of two that have the same, and returns how many are left.
func merge(changes []change) int {
	if len(changes) < 2 {
		return len(changes)
	}
	slices.SortFunc(changes, func(a, b change) int { return bytes.Compare(a.name, b.name) })
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

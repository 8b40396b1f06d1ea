package diff

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
	// known is the result of comparing the two. A comparison below them continues from it.
	known rawjson.Prefix
}

// members compares objects key by key over the union of their keys (D1). One side may be absent.
func (d *Differ) members(p *Place, old, new rawjson.Value) {
	changes, passed, defaults := d.changes, d.passed, d.defaults
	d.gather(p, old, new)
	d.eachMember(p)
	if !old.IsAbsent() || d.changes > changes || p.Path.IsRoot() || d.Err != nil {
		return
	}
	// No part counts as a change, but the object did appear. It is a leaf, like an empty one, unless the API server wrote all of it, or it is its
	// own default, which may have defaults in it. What has both may mean something that neither has: a NetworkPolicy for all Pods.
	byServer, isDefault := d.passed > passed, d.defaults > defaults
	if byServer == isDefault || isDefault && string(p.Node.Default()) != "{}" {
		d.change(p, change.Added)
	}
}

// membersInStep compares objects that have the same names in the same order. It reports false, and no change, if the names differ.
func (d *Differ) membersInStep(p *Place, old, new rawjson.Value) bool {
	if !d.gatherInStep(p, old, new) {
		return false
	}
	d.eachMember(p)
	return true
}

// gatherInStep gathers the members that differ. It reports false if the names differ.
func (d *Differ) gatherInStep(p *Place, old, new rawjson.Value) bool {
	d.parts = d.parts[:0]
	x, y := old.Members(), new.Members()
	for {
		more, others := x.Next(), y.Next()
		if !more && !others {
			break
		}
		if more != others || !x.Name().Equal(y.Name()) {
			return false
		}
		if !d.Same.Same(x.Value(), y.Value()) {
			d.push(p, pair{x.Name().Bytes(), x.Value(), y.Value(), d.Same.Last(x.Value(), y.Value())})
		}
	}
	d.keepParts(p)
	return true
}

// eachMember walks the members that differ.
func (d *Differ) eachMember(p *Place) {
	for i := range p.changed {
		c := d.part(p, i)
		d.key(p, c.name, c.old, c.new, (*Differ).walk)
	}
}

// manyParts is the number of parts from which on memory is made to measure.
const manyParts = 1024

// push adds a part of a place to those that are gathered.
func (d *Differ) push(p *Place, c pair) {
	if n := len(d.parts); n == cap(d.parts) && n >= manyParts {
		d.parts = slices.Grow(d.parts, max(0, count(p.Old)+count(p.New)-n))
	}
	d.parts = append(d.parts, c)
}

// keepParts gives a place the parts that were gathered, in the order of their names. On a way down many places wait with theirs, so the memory of
// each has the right size.
func (d *Differ) keepParts(p *Place) {
	parts := merge(d.parts)
	if len(parts) < manyParts {
		p.changed = append(p.changed[:0], parts...)
		return
	}
	p.changed, d.parts = parts, nil
}

// part returns a part of a place, and continues its comparison.
func (d *Differ) part(p *Place, i int) *pair {
	c := &p.changed[i]
	p.waiting = uint32(len(p.changed) - i - 1) //nolint:gosec // An object has fewer members than bytes.
	d.Same.Recall(c.old, c.new, c.known)
	return c
}

// gather gathers the members that may differ between two objects, in the order of their names. A value that is not an object has no members.
func (d *Differ) gather(p *Place, old, new rawjson.Value) {
	d.parts = d.parts[:0]
	if old.IsObject() && new.IsObject() {
		d.gatherBoth(p, old, new)
	} else {
		for m := old.Members(); m.Next(); {
			d.push(p, pair{name: m.Name().Bytes(), old: m.Value()})
		}
		for m := new.Members(); m.Next(); {
			d.push(p, pair{name: m.Name().Bytes(), new: m.Value()})
		}
	}
	d.keepParts(p)
}

// gatherBoth walks two objects in step. Where the names differ, only the side with the lesser name advances. In sorted objects this finds the
// added and removed members. If a name appears again further on, merge joins the two changes.
func (d *Differ) gatherBoth(p *Place, old, new rawjson.Value) {
	x, y := old.Members(), new.Members()
	more, others := x.Next(), y.Next()
	// ahead is one member further than x, and behind one further than y, once they have been read.
	var ahead, behind peek
	for more && others {
		if x.Name().Equal(y.Name()) {
			if !d.Same.Same(x.Value(), y.Value()) {
				d.push(p, pair{x.Name().Bytes(), x.Value(), y.Value(), d.Same.Last(x.Value(), y.Value())})
			}
			more, others = x.Next(), y.Next()
			ahead.seen, behind.seen = false, false
			continue
		}
		// The next member may have the same name, if the names are in the order of a struct's fields.
		removed := ahead.is(x, y.Name())
		added := !removed && behind.is(y, x.Name())
		if removed || !added && x.Name().Compare(y.Name()) < 0 {
			d.push(p, pair{name: x.Name().Bytes(), old: x.Value()})
			more = x.Next()
			ahead.seen = false
		} else {
			d.push(p, pair{name: y.Name().Bytes(), new: y.Value()})
			others = y.Next()
			behind.seen = false
		}
	}
	for ; more; more = x.Next() {
		d.push(p, pair{name: x.Name().Bytes(), old: x.Value()})
	}
	for ; others; others = y.Next() {
		d.push(p, pair{name: y.Name().Bytes(), new: y.Value()})
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

// merge sorts by name, and joins two changes of the same name.
func merge(changes []pair) []pair {
	if len(changes) < 2 {
		return changes
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
	return changes[:n+1]
}

// count returns the number of members or items of a value.
func count(v rawjson.Value) int {
	n := 0
	for m := v.Members(); m.Next(); {
		n++
	}
	for i := v.Items(); i.Next(); {
		n++
	}
	return n
}

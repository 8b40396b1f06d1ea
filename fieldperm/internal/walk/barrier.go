package walk

import (
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// barriersWithin charges the barriers strictly inside a value that is charged as a whole. The verbs of the whole do not cover a guarded
// field (D2, D4). Lists are compared by position, because atomic lists have no keys.
func (d *Differ) barriersWithin(s Scope, old, new rawjson.Value) {
	if d.Stops() || !d.MayBarWithin(s) || d.Same.Equal(old, new) {
		return
	}
	s.whole = d.wholeOf(s)
	if s.Node.Map() != nil && (old.IsObject() || new.IsObject()) {
		around := d.changed
		begin := d.changes(old, new)
		for len(d.changed) > begin {
			c := d.pop()
			if !d.Same.Equal(c.old, c.new) {
				d.Key(s, c.name, c.old, c.new, guardedBelow(s))
			}
		}
		d.leave(around)
	}
	if s.Node.List() != nil && (old.IsList() || new.IsList()) {
		d.positions(s, old, new)
	}
}

// Within returns the charges of barriersWithin for a value that is removed. The result shares memory with Out: it is valid while its elements are
// charged in order, at most one requirement for each.
func (d *Differ) Within(s Scope, was rawjson.Value) []change.Requirement {
	begin := len(d.Out)
	d.barriersWithin(s, was, rawjson.Value{})
	found := d.Out[begin:]
	d.Out = d.Out[:begin]
	return found
}

// MayBarWithin reports whether a part inside may have to be charged besides the whole.
func (d *Differ) MayBarWithin(s Scope) bool {
	return d.Parts || len(d.Uncovered) > 0 || len(d.InStatus) > 0 || s.Node.MayBarWithin()
}

// wholeOf returns the line of the value that is charged as a whole around the parts of a value.
func (d *Differ) wholeOf(s Scope) *line {
	if s.whole == nil && d.Parts {
		return &s.line
	}
	return s.whole
}

// part adds a changed scalar in a value that is charged as a whole.
func (d *Differ) part(s Scope, old, new rawjson.Value) {
	if s.whole != nil && (isPart(old) || isPart(new)) {
		d.require(s.Path, operation(old, new), *s.whole)
	}
}

// isPart reports whether a value has no parts of its own.
func isPart(v rawjson.Value) bool {
	return v.IsScalar() || v.Kind() == rawjson.Null || (v.IsObject() || v.IsList()) && v.IsEmpty()
}

// guardedBelow returns a visitor that charges the node if it has a barrier of its own, and then continues below it. In a new object, a
// value that the API server also gives to a client that does not set it is not charged.
func guardedBelow(above Scope) Visitor {
	return func(d *Differ, s Scope, old, new rawjson.Value) {
		if d.unasked(s, old, new) {
			return
		}
		if s.guards(above) {
			d.Charge(s, operation(old, new))
		}
		d.part(s, old, new)
		d.barriersWithin(s, old, new)
	}
}

// positions looks for barriers in the items of lists by position.
func (d *Differ) positions(s Scope, old, new rawjson.Value) {
	x, y := old.Items(), new.Items()
	for i := 0; ; i++ {
		var was, is rawjson.Value
		if x.Next() {
			was = x.Value()
		}
		if y.Next() {
			is = y.Value()
		}
		if was.IsAbsent() && is.IsAbsent() {
			return
		}
		d.position(s, i, was, is)
	}
}

// pairwise looks for barriers in items by position.
func (d *Differ) pairwise(s Scope, old, new []rawjson.Value) {
	s.whole = d.wholeOf(s)
	for i := range max(len(old), len(new)) {
		var was, is rawjson.Value
		if i < len(old) {
			was = old[i]
		}
		if i < len(new) {
			is = new[i]
		}
		d.position(s, i, was, is)
	}
}

// position looks for barriers in one position. Items whose keys differ are different items.
func (d *Differ) position(s Scope, i int, was, is rawjson.Value) {
	if d.Same.Equal(was, is) {
		return
	}
	if !was.IsAbsent() && !is.IsAbsent() && !d.sameKeys(s, was, is) {
		d.positioned(s, i, was, rawjson.Value{})
		d.positioned(s, i, rawjson.Value{}, is)
		return
	}
	d.positioned(s, i, was, is)
}

func (d *Differ) positioned(s Scope, i int, old, new rawjson.Value) {
	_, emitted := d.itemStep(s, either(new, old))
	d.child(s, s.Node.List().Item(), s.Path.Index(i), emitted, old, new, guardedBelow(s))
}

func (d *Differ) sameKeys(s Scope, a, b rawjson.Value) bool {
	keys := s.Node.List().Keys()
	for i := range keys {
		x, _ := d.keyValue(&keys[i], a)
		y, _ := d.keyValue(&keys[i], b)
		if !d.keys.Equal(x, y) {
			return false
		}
	}
	return true
}

package fieldperm

import "github.com/fieldperm/fieldperm/internal/rawjson"

// barriersWithin charges the barriers strictly inside a value that is charged as a whole. The verbs of the whole do not cover a guarded
// field (D2, D4). Lists are compared by position, because atomic lists have no keys.
func (d *differ) barriersWithin(s scope, old, new rawjson.Value) {
	if d.stops() || !d.mayBarWithin(s) || d.same.Equal(old, new) {
		return
	}
	if s.node.Map() != nil && (old.IsObject() || new.IsObject()) {
		if old.Ambiguous() || new.Ambiguous() {
			d.eachOccurrence(s, old, new)
			return
		}
		begin := d.changes(old, new)
		for i := begin; i < len(d.changed); i++ {
			c := d.changed[i]
			d.same.Recall(c.run)
			if !d.same.Equal(c.old, c.new) {
				d.key(s, c.name, c.old, c.new, guardedBelow(s))
			}
		}
		d.changed = d.changed[:begin]
	}
	if s.node.List() != nil && (old.IsList() || new.IsList()) {
		d.positions(s, old, new)
	}
}

// mayBarWithin reports whether a part inside may have to be charged besides the whole.
func (d *differ) mayBarWithin(s scope) bool {
	return len(d.uncovered) > 0 || len(d.inStatus) > 0 || s.node.MayBarWithin() || s.node.MayStandApartWithin()
}

// guardedBelow returns a visitor that charges the node if it has a barrier of its own, and then continues below it. In a new object, a
// value that the API server also gives to a client that does not set it is not charged.
func guardedBelow(above scope) visitor {
	return func(d *differ, s scope, old, new rawjson.Value) {
		if d.unasked(s, old, new) {
			return
		}
		if s.guards(above) {
			d.charge(s, operation(old, new))
		}
		d.barriersWithin(s, old, new)
	}
}

// positions looks for barriers in the items of lists by position.
func (d *differ) positions(s scope, old, new rawjson.Value) {
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
func (d *differ) pairwise(s scope, old, new []rawjson.Value) {
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
func (d *differ) position(s scope, i int, was, is rawjson.Value) {
	if d.same.Equal(was, is) {
		return
	}
	if !was.IsAbsent() && !is.IsAbsent() && !d.sameKeys(s, was, is) {
		d.positioned(s, i, was, rawjson.Value{})
		d.positioned(s, i, rawjson.Value{}, is)
		return
	}
	d.positioned(s, i, was, is)
}

func (d *differ) positioned(s scope, i int, old, new rawjson.Value) {
	_, emitted := d.itemStep(s, either(new, old))
	d.child(s, s.node.List().Item(), s.path.Index(i), emitted, old, new, guardedBelow(s))
}

func (d *differ) sameKeys(s scope, a, b rawjson.Value) bool {
	keys := s.node.List().Keys()
	for i := range keys {
		x, _ := d.keyValue(&keys[i], a)
		y, _ := d.keyValue(&keys[i], b)
		if !d.keys.Equal(x, y) {
			return false
		}
	}
	return true
}

// eachOccurrence looks for barriers in objects where a name occurs twice. Every occurrence counts, on both sides.
func (d *differ) eachOccurrence(s scope, old, new rawjson.Value) {
	for m := old.Members(); m.Next(); {
		d.key(s, m.Name().Bytes(), m.Value(), rawjson.Value{}, guardedBelow(s))
	}
	for m := new.Members(); m.Next(); {
		d.key(s, m.Name().Bytes(), rawjson.Value{}, m.Value(), guardedBelow(s))
	}
}

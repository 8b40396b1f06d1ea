package diff

import "github.com/fieldperm/fieldperm/internal/rawjson"

// Inside reports what is strictly inside the value of a place that went from old to new as a whole.
func (d *Differ) Inside(p *Place, old, new rawjson.Value, report func(Change)) {
	d.report = report
	d.inside(p, old, new)
}

// LooksInside reports whether Inside reports anything.
func (d *Differ) LooksInside(p *Place) bool { return d.Deep || p.Node.MayBarWithin() }

// inside reports what is strictly inside a value that has changed as a whole (D2, D4). Lists are compared by position, because atomic lists
// have no keys.
func (d *Differ) inside(p *Place, old, new rawjson.Value) {
	if d.Stops() || !d.LooksInside(p) || d.Same.Equal(old, new) {
		return
	}
	if p.Node.Map() != nil && (old.IsObject() || new.IsObject()) {
		d.gather(p, old, new)
		for i := range p.changed {
			c := d.part(p, i)
			if !d.Same.Equal(c.old, c.new) {
				d.key(p, c.name, c.old, c.new, (*Differ).within)
			}
		}
	}
	if p.Node.List() != nil && (old.IsList() || new.IsList()) {
		d.positions(p, old, new)
	}
}

// within reports a place inside a whole, and what is inside it. In a new object, a value that the API server also gives to a client that does not
// set it is no change.
func (d *Differ) within(p *Place, old, new rawjson.Value) {
	if p.Whole == nil {
		p.Whole = p.Up
	}
	if d.unasked(p, old, new) {
		return
	}
	d.report(Change{Place: p, Operation: OperationOf(old, new), Part: isPart(old) || isPart(new)})
	d.inside(p, old, new)
}

// isPart reports whether a value has no parts of its own.
func isPart(v rawjson.Value) bool {
	return v.IsScalar() || v.Kind() == rawjson.Null || (v.IsObject() || v.IsList()) && v.IsEmpty()
}

// positions compares the items of lists by position.
func (d *Differ) positions(p *Place, old, new rawjson.Value) {
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
		d.position(p, i, was, is)
	}
}

// pairwise compares items by position.
func (d *Differ) pairwise(p *Place, old, new []rawjson.Value) {
	for i := range max(len(old), len(new)) {
		var was, is rawjson.Value
		if i < len(old) {
			was = old[i]
		}
		if i < len(new) {
			is = new[i]
		}
		d.position(p, i, was, is)
	}
}

// position compares two items. Items whose keys differ are different items, and so are different members of a set.
func (d *Differ) position(p *Place, i int, was, is rawjson.Value) {
	if d.Same.Equal(was, is) {
		return
	}
	if !was.IsAbsent() && !is.IsAbsent() && !d.sameKeys(p, was, is) {
		d.positioned(p, i, was, rawjson.Value{})
		d.positioned(p, i, rawjson.Value{}, is)
		return
	}
	d.positioned(p, i, was, is)
}

// positioned reports an item that is compared by its position. Its path has its keys, if it has any.
func (d *Differ) positioned(p *Place, i int, old, new rawjson.Value) {
	list, item := p.Node.List(), either(new, old)
	path, bound := d.itemStep(p, item)
	if _, isNamed := d.identify(list.Keys(), item); list.Atomic() || !isNamed {
		path = p.Path.Index(i)
	}
	d.child(p, list.Item(), path, bound, old, new, (*Differ).within)
}

func (d *Differ) sameKeys(p *Place, a, b rawjson.Value) bool {
	keys := p.Node.List().Keys()
	if len(keys) == 0 && !p.Node.List().Atomic() {
		return d.Same.Equal(a, b)
	}
	for i := range keys {
		x, _ := d.keyValue(&keys[i], a)
		y, _ := d.keyValue(&keys[i], b)
		if !d.keys.Equal(x, y) {
			return false
		}
	}
	return true
}

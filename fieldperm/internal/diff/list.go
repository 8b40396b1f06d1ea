package diff

import (
	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// items compares list-maps and sets. One side may be absent, or a leaf that counts as a list without items.
func (d *Differ) items(p *Place, old, new rawjson.Value) {
	if old.IsList() && new.IsList() && d.inStep(p, old, new) {
		return
	}
	list := p.Node.List()
	g := d.group(list.Keys(), old, new)
	// The groups are in the order of the new list, followed by the groups that only the old list has.
	if !g.add(new, true) || !g.add(old, false) {
		// D5: without valid keys, old and new items cannot be matched. Two readers of one document may match them differently, and no change
		// may be hidden by that.
		if !d.Same.Equal(old, new) {
			d.changeWhole(p, old, new)
		}
		return
	}
	p.waiting = g.single()
	ambiguous := false
	for i := range g.groups {
		switch group := &g.groups[i]; {
		case group.was.n > 1 || group.is.n > 1:
			before, after := g.values(group.was), g.values(group.is)
			if d.equalItems(before, after) {
				continue
			}
			if !ambiguous {
				ambiguous = true
				d.change(p, OperationOf(old, new))
			}
			d.pairwise(p, before, after)
		case group.was.n == 0:
			p.waiting--
			d.item(p, rawjson.Value{}, g.items[group.is.first].value, (*Differ).membership)
		case group.is.n == 0:
			p.waiting--
			d.item(p, g.items[group.was.first].value, rawjson.Value{}, (*Differ).membership)
		default:
			d.item(p, g.items[group.was.first].value, g.items[group.is.first].value, (*Differ).walk)
		}
	}
	// D3: only items that stay have an order to change. structured-merge-diff calls lists of another order equal, but the order of
	// initContainers has an effect.
	if !ambiguous && g.reordered() {
		d.change(p, change.Reordered)
	}
}

// InStepLimit is how many items may change in a list that is compared in step. Each changed item is compared with all others, to prove
// that its key is unique.
const InStepLimit = 4

// inStep compares lists with the same keys in the same order. It reports false, and no change, if the keys differ or the key of a
// changed item occurs twice. It looks at keys only and allocates no memory for them.
func (d *Differ) inStep(p *Place, old, new rawjson.Value) bool {
	if !d.itemsInStep(p, old, new) {
		return false
	}
	for i := range p.changed {
		c := d.part(p, i)
		d.item(p, c.old, c.new, (*Differ).walk)
	}
	return true
}

// itemsInStep gathers the items that differ. It reports false where inStep does.
func (d *Differ) itemsInStep(p *Place, old, new rawjson.Value) bool {
	keys := p.Node.List().Keys()
	if len(keys) > maxKeys {
		return false
	}
	p.changed = p.changed[:0]
	x, y, items := old.Items(), new.Items(), 0
	for ; ; items++ {
		more, others := x.Next(), y.Next()
		if more != others {
			return false
		}
		if !more {
			break
		}
		was, ok := d.identify(keys, x.Value())
		if !ok {
			return false
		}
		if d.Same.Same(x.Value(), y.Value()) {
			continue
		}
		is, ok := d.identify(keys, y.Value())
		if !ok || !d.sameIdentity(&was, &is) || len(p.changed) == InStepLimit {
			return false
		}
		p.changed = append(p.changed, pair{old: x.Value(), new: y.Value(), known: d.Same.Last(x.Value(), y.Value())})
	}
	for i := range p.changed {
		if items > 1 && !d.unique(keys, p.changed[i].new, new) {
			return false
		}
	}
	return true
}

// unique reports whether no other item of the list has the keys of this one.
func (d *Differ) unique(keys []schema.Key, item, list rawjson.Value) bool {
	own, _ := d.identify(keys, item)
	n := 0
	for i := list.Items(); i.Next(); {
		if other, _ := d.identify(keys, i.Value()); d.sameIdentity(&own, &other) {
			n++
		}
	}
	return n == 1
}

// membership reports an item that appears or disappears as a whole (D2).
func (d *Differ) membership(p *Place, old, new rawjson.Value) {
	if d.fits(p, old, new) {
		d.changeWhole(p, old, new)
	}
}

// item visits one item with the parameters that its keys bind.
func (d *Differ) item(p *Place, old, new rawjson.Value, visit visitor) {
	if d.Same.Same(old, new) {
		return
	}
	path, bound := d.itemStep(p, either(new, old))
	d.child(p, p.Node.List().Item(), path, bound, old, new, visit)
}

func either(first, second rawjson.Value) rawjson.Value {
	if first.IsAbsent() {
		return second
	}
	return first
}

// itemStep returns the path of an item and the parameters that its keys bind.
func (d *Differ) itemStep(p *Place, v rawjson.Value) (fieldpath.Path, *binding) {
	keys := p.Node.List().Keys()
	if len(keys) == 0 {
		return p.Path.Member(v.Raw()), p.bound
	}
	bound := p.bound
	path := make([]fieldpath.Key, len(keys))
	for i := range keys {
		property, _ := d.keyValue(&keys[i], v)
		path[i] = fieldpath.Key{Name: keys[i].Name, Value: property.Raw()}
		// A key that is not a scalar binds "", which no verb takes as a parameter. It must hide a parameter of the same name from further
		// out, which belongs to another item.
		if keys[i].Emits != "" {
			bound = bound.with(keys[i].Emits, property.ScalarText())
		}
	}
	return d.paths.Item(p.Path, path), bound
}

package walk

import (
	"slices"

	"github.com/fieldperm/fieldperm/fieldperm/change"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// items compares list-maps and sets. One side may be absent, or a leaf that counts as a list without items.
func (d *Differ) items(s Scope, old, new rawjson.Value) {
	if old.IsList() && new.IsList() && d.inStep(s, old, new) {
		return
	}
	list := s.Node.List()
	g := d.group(list.Keys(), old, new)
	// The groups are in the order of the new list, followed by the groups that only the old list has.
	if !g.add(new, true) || !g.add(old, false) {
		// D5: without valid keys, old and new items cannot be matched. Two readers of one document may match them differently, and no change
		// may be hidden by that.
		if !d.Same.Equal(old, new) {
			d.Charge(s, operation(old, new))
			d.barriersWithin(s, old, new)
		}
		return
	}
	if n := g.single(); n > mostKept {
		d.reserve(n)
	}
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
				d.Charge(s, operation(old, new))
			}
			d.pairwise(s, before, after)
		case group.was.n == 0:
			d.Item(s, rawjson.Value{}, g.items[group.is.first].value, membership)
		case group.is.n == 0:
			d.Item(s, g.items[group.was.first].value, rawjson.Value{}, membership)
		default:
			d.Item(s, g.items[group.was.first].value, g.items[group.is.first].value, walk)
		}
	}
	// D3: only items that stay have an order to change. structured-merge-diff calls lists of another order equal, but the order of
	// initContainers has an effect.
	if !ambiguous && g.reordered() {
		d.Charge(s, change.Reordered)
	}
}

// InStepLimit is how many items may change in a list that is compared in step. Each changed item is compared with all others, to prove
// that its key is unique.
const InStepLimit = 4

// inStep compares lists with the same keys in the same order. It reports false, and charges nothing, if the keys differ or the key of a
// changed item occurs twice. It looks at keys only and allocates no memory for them.
func (d *Differ) inStep(s Scope, old, new rawjson.Value) bool {
	around := d.changed
	begin, ok := d.itemsInStep(s.Node.List().Keys(), old, new)
	for ok && len(d.changed) > begin {
		c := d.pop()
		d.Item(s, c.old, c.new, walk)
	}
	d.leave(around)
	return ok
}

// itemsInStep puts the items that differ on the stack of changes, the first on top, and returns the index of the last. It reports false
// where inStep does.
func (d *Differ) itemsInStep(keys []schema.Key, old, new rawjson.Value) (int, bool) {
	if len(keys) > maxKeys {
		return 0, false
	}
	d.enterLevel(old, rawjson.Value{})
	x, y, items := old.Items(), new.Items(), 0
	for ; ; items++ {
		more, others := x.Next(), y.Next()
		if more != others {
			return 0, false
		}
		if !more {
			break
		}
		was, ok := d.identify(keys, x.Value())
		if !ok {
			return 0, false
		}
		if d.Same.Same(x.Value(), y.Value()) {
			continue
		}
		is, ok := d.identify(keys, y.Value())
		if !ok || !d.sameIdentity(&was, &is) || len(d.changed)-d.level == InStepLimit {
			return 0, false
		}
		d.push(pair{old: x.Value(), new: y.Value(), known: d.Same.Last(x.Value(), y.Value())})
	}
	found := d.changed[d.level:]
	for i := range found {
		if items > 1 && !d.unique(keys, found[i].new, new) {
			return 0, false
		}
	}
	slices.Reverse(found)
	return d.level, true
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

// membership charges an item that appears or disappears, and the barriers inside it (D2).
func membership(d *Differ, s Scope, old, new rawjson.Value) {
	if !d.fits(s, old, new) {
		return
	}
	d.Charge(s, operation(old, new))
	d.barriersWithin(s, old, new)
}

// Item enters the node of one item with the parameters that its keys emit.
func (d *Differ) Item(s Scope, old, new rawjson.Value, visit Visitor) {
	if d.Same.Same(old, new) {
		return
	}
	path, emitted := d.itemStep(s, either(new, old))
	d.child(s, s.Node.List().Item(), path, emitted, old, new, visit)
}

func either(first, second rawjson.Value) rawjson.Value {
	if first.IsAbsent() {
		return second
	}
	return first
}

// itemStep returns the path of an item and the parameters that its keys emit.
func (d *Differ) itemStep(s Scope, v rawjson.Value) (fieldpath.Path, *binding) {
	keys := s.Node.List().Keys()
	if len(keys) == 0 {
		return s.Path.Member(v.Raw()), s.emitted
	}
	emitted := s.emitted
	path := make([]fieldpath.Key, len(keys))
	for i := range keys {
		property, _ := d.keyValue(&keys[i], v)
		path[i] = fieldpath.Key{Name: keys[i].Name, Value: property.Raw()}
		// A key that is not a scalar emits "", which no verb takes as a parameter. It must hide a parameter of the same name from further
		// out, which belongs to another item.
		if keys[i].Emits != "" {
			emitted = emitted.with(keys[i].Emits, property.ScalarText())
		}
	}
	return d.paths.Item(s.Path, path), emitted
}

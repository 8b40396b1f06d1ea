package exact

import (
	"slices"
)

// guarded charges the barriers strictly inside a place that is charged as a whole, a leaf or an item: the verbs of the whole do not count
// for them (D2, D4). Items are compared by position.
func (o *oracle) guarded(p place) {
	if o.same(p.old, p.new) {
		return
	}
	if p.node.Map() != nil {
		o.guardedMembers(p)
	}
	if p.node.List() != nil && (p.old.is(list) || p.new.is(list)) {
		o.guardedItems(p, itemsOf(p.old), itemsOf(p.new))
	}
}

func (o *oracle) guardedMembers(p place) {
	for _, name := range p.memberNames() {
		if was, is := p.old.get(name), p.new.get(name); !o.same(was, is) {
			o.guardedAt(p, o.member(p, name, was, is))
		}
	}
}

// memberNames returns the names of the members of both values, in order.
func (p place) memberNames() []string {
	names := append(p.old.names(), p.new.names()...)
	slices.Sort(names)
	return slices.Compact(names)
}

func (o *oracle) guardedItems(p place, old, new []*value) {
	for i := range max(len(old), len(new)) {
		var was, is *value
		if i < len(old) {
			was = old[i]
		}
		if i < len(new) {
			is = new[i]
		}
		switch {
		case o.same(was, is):
		case was != nil && is != nil && !o.sameKeys(p, was, is):
			// The two items have different keys: one item disappears, the other one appears.
			o.guardedAt(p, o.at(p, i, was, nil))
			o.guardedAt(p, o.at(p, i, nil, is))
		default:
			o.guardedAt(p, o.at(p, i, was, is))
		}
	}
}

func (o *oracle) sameKeys(p place, a, b *value) bool {
	if len(keysOf(p.atom.List)) == 0 && p.atom.List.ElementRelationship == "associative" {
		return o.same(a, b) // The members of a set are their own keys.
	}
	for _, k := range keysOf(p.atom.List) {
		if !o.same(o.keyValue(p.atom.List, k, a), o.keyValue(p.atom.List, k, b)) {
			return false
		}
	}
	return true
}

// guardedAt charges the place if it is a barrier of its own, and continues below it. Values that a new object also has for a client that
// sends none are free.
func (o *oracle) guardedAt(above, p place) {
	for _, half := range o.halves(p) {
		if o.create && o.unasked(half) {
			continue
		}
		if half.barrier > above.barrier || len(half.beside) > len(above.beside) {
			o.charge(half, operationOf(half.old, half.new))
		}
		o.guarded(half)
	}
}

func itemsOf(v *value) []*value {
	if !v.is(list) {
		return nil
	}
	return v.items
}

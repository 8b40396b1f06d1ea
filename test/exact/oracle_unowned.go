package exact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/schema"
)

// pruned returns the number of path elements that lead to the first named field that a later apply of the manager, without the gained path,
// may remove as a whole, 0 if there is none. It also returns the numbers for fields above it that stay because other managers apply a part
// of them. A manager that updates holds a container only by its own entry. The manager itself holds it by any path that it had.
func (t transfer) pruned(m manager, p fieldpath.Path) (n int, brought []int) {
	for n := 1; n <= len(p); n++ {
		e := t.follow(p[:n])
		if e.old == nil || e.new == nil || e.missing || n == len(p) && !e.container {
			return 0, brought
		}
		held := t.anyManager(func(other manager, set *fieldpath.Set) bool {
			return t.kind.ConvertsByName() && !t.applies(other) && set.Has(p[:n]) || other == m && t.was.applies(m) && (set.Has(p[:n]) || t.any(set, p[:n]))
		})
		applied := t.anyManager(func(other manager, set *fieldpath.Set) bool {
			return t.applies(other) && (set.Has(p[:n]) || t.any(set, p[:n]))
		})
		switch {
		case !t.isField(p[:n]) || n == 1 && *p[0].FieldName == "metadata" || held:
		case applied:
			brought = append(brought, n)
		default:
			return n, brought
		}
	}
	return 0, brought
}

// isField reports whether a path ends at a field that the schema names.
func (t transfer) isField(p fieldpath.Path) bool {
	above := t.follow(p[:len(p)-1])
	name := p[len(p)-1].FieldName
	if name == nil || above.atom.Map == nil {
		return false
	}
	_, known := above.atom.Map.FindField(*name)
	return known
}

// unowned charges the parts of a container that stay and have no owner after the request, each part as if it disappeared. It leaves out the
// parts that the verbs of whole cover, if whole is charged. In a container that is listed as brought it also leaves out the values that the
// server fills in.
func (t transfer) unowned(p fieldpath.Path, charge func(place), whole *place, brought *[]fieldpath.Path) {
	above := func(q fieldpath.Path) bool { return len(q) <= len(p) && p[:len(q)].Equals(q) }
	list := t.walked
	if brought != nil {
		list = brought
	}
	if slices.ContainsFunc(*t.walked, above) || slices.ContainsFunc(*list, above) {
		return
	}
	*list = append(*list, slices.Clone(p))
	t.unownedIn(t.follow(p).place, p, func(q place) {
		if brought != nil && t.fillsIn(q) {
			return
		}
		if whole == nil || !whole.covers(q) {
			charge(q)
		}
		t.asIfGone(q, charge)
	})
}

// fillsIn reports whether the server gives the old value to any new object without a value there.
func (t transfer) fillsIn(p place) bool {
	p = p.half(nil, p.old)
	if t.stored != nil {
		one := *t.oracle
		one.create = true
		return one.passes(p)
	}
	w := p.node.Written()
	return w != nil && slices.ContainsFunc(w.Cases(), func(c schema.WrittenCase) bool {
		return c.Constant() && len(c.Cause()) == 0 && len(c.Without()) == 0 && c.ByServer(nil, p.new.native(), nil, nil)
	})
}

// unownedIn finds the parts of a place that stay and have no owner.
func (t transfer) unownedIn(p place, at fieldpath.Path, found func(place)) {
	part := func(child place, e fieldpath.PathElement, is *value) {
		next := append(slices.Clone(at), e)
		all := fieldpath.NewSet()
		for _, o := range t.is {
			all = all.Union(t.named(o))
		}
		owned := t.owns(all, next)
		named := false
		if e.FieldName != nil && p.atom.Map != nil {
			_, named = p.atom.Map.FindField(*e.FieldName)
		}
		both := child.half(child.old, is)
		switch parts := container(both) && len(child.old.members)+len(child.old.items) > 0; {
		case !parts && !owned && t.same(child.old, is), parts && !named && !owned:
			found(child)
		case parts && (named || owned):
			t.unownedIn(both, next, found)
		}
	}
	switch {
	case p.isEmpty():
	case container(p) && p.old.is(object) && !p.old.repeats() && !p.new.repeats():
		for _, m := range p.old.members {
			if is := p.new.get(m.name); is != nil {
				part(t.member(p, m.name, m.value, nil), fieldpath.PathElement{FieldName: &m.name}, is)
			}
		}
	case container(p) && p.old.is(list) && t.distinct(p, p.old) && t.distinct(p, p.new):
		items, _, _ := t.byKey(p.atom.List, p.new)
		for _, item := range p.old.items {
			if id, _ := t.identity(p.atom.List, item); len(items[id]) > 0 {
				part(t.item(p, item, item, nil), t.elementOf(p, item), items[id][0])
			}
		}
	default:
		found(p.half(p.old, nil))
	}
}

// isEmpty reports whether a place is a container that is empty before and after.
func (p place) isEmpty() bool {
	switch {
	case p.old.is(object) && p.new.is(object) && p.atom.Map != nil && p.atom.Map.ElementRelationship != "atomic":
	case p.old.is(list) && p.new.is(list) && p.atom.List != nil && p.atom.List.ElementRelationship == "associative":
	default:
		return false
	}
	return len(p.old.members)+len(p.old.items)+len(p.new.members)+len(p.new.items) == 0
}

// distinct reports whether the keys of a list identify its items.
func (t transfer) distinct(p place, v *value) bool {
	groups, order, keyed := t.byKey(p.atom.List, v)
	return keyed && len(groups) == len(order)
}

// elementOf is the path element by which managedFields name an item.
func (t transfer) elementOf(p place, item *value) fieldpath.PathElement {
	keys := keysOf(p.atom.List)
	if len(keys) == 0 {
		v := smdvalue.NewValueInterface(item.native())
		return fieldpath.PathElement{Value: &v}
	}
	var out smdvalue.FieldList
	for _, k := range keys {
		if v := t.keyValue(p.atom.List, k, item); v != nil {
			out = append(out, smdvalue.Field{Name: k, Value: smdvalue.NewValueInterface(v.native())})
		}
	}
	out.Sort()
	return fieldpath.PathElement{Key: &out}
}

// covers reports whether every verb that covers the place also covers a place in it.
func (p *place) covers(in place) bool {
	return in.barrier <= p.barrier && len(in.chain) >= len(p.chain) && slices.Equal(in.chain[:len(p.chain)], p.chain)
}

// asIfGone charges the guarded places inside a place as if the place disappeared.
func (o *oracle) asIfGone(p place, charge func(place)) {
	begin := len(o.charges)
	o.guarded(p.half(p.old, nil))
	guarded := slices.Clone(o.charges[begin:])
	o.charges = o.charges[:begin]
	for _, c := range guarded {
		charge(place{path: c.path, top: c.top, chain: c.chain, barrier: c.barrier})
	}
}

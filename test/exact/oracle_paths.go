package exact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/schema"
)

// end is the place to which a path of managedFields leads.
type end struct {
	place
	// container says that the place is an object or keyed list that stays and is not empty on both sides.
	container bool
	// keyField says that the place is a key property of an item that stays.
	keyField bool
	// missing says that there is no value on either side. above then says whether the nearest existing place above it changed.
	missing, above bool
}

// byServer reports whether only the API server writes the place of a path.
func (e end) byServer() bool {
	return !e.missing && !e.container && (e.node.Role() == schema.RoleServerWritten || e.node.Role() == schema.RoleOwnership)
}

func (e end) changed(o *oracle) bool {
	return !e.missing && !e.container && !e.byServer() && !o.same(e.old, e.new)
}

func (t transfer) follow(path fieldpath.Path) end {
	p := t.root
	near := p
	keyField := false
	for i, e := range path {
		if p.old != nil || p.new != nil {
			near = p
		}
		keyField = false
		switch {
		case e.FieldName != nil && p.atom.Map != nil:
			keyField = p.old != nil && p.new != nil && isKey(path[:i+1])
			was, is := p.old.get(*e.FieldName), p.new.get(*e.FieldName)
			halves := t.halves(t.member(p, *e.FieldName, was, is))
			p = halves[len(halves)-1].half(was, is)
		case (e.Key != nil || e.Value != nil) && p.atom.List != nil:
			item, several := t.followItem(p, e)
			if several != nil {
				return end{place: *several}
			}
			p = item
		case e.Index != nil && p.atom.List != nil && p.atom.List.ElementRelationship != "associative":
			p = t.at(p, *e.Index, itemAt(p.old, *e.Index), itemAt(p.new, *e.Index))
		default:
			return end{place: p, missing: true, above: near.path != "" && t.changedAt(near)}
		}
	}
	if p.old == nil && p.new == nil {
		return end{place: p, keyField: keyField, missing: true, above: near.path != "" && t.changedAt(near)}
	}
	return end{place: p, container: container(p), keyField: keyField}
}

func container(p place) bool {
	old, new := p.old, p.new
	switch {
	case old.is(object) && new.is(object) && p.atom.Map != nil && p.atom.Map.ElementRelationship != "atomic":
		return len(old.members)+len(new.members) > 0
	case old.is(list) && new.is(list) && p.atom.List != nil && p.atom.List.ElementRelationship == "associative":
		return len(old.items)+len(new.items) > 0
	}
	return false
}

// isKey reports whether a path leads to a key of the item before it.
func isKey(p fieldpath.Path) bool {
	n := len(p) - 1
	return n > 0 && p[n].FieldName != nil && p[n-1].Key != nil &&
		slices.ContainsFunc(*p[n-1].Key, func(k smdvalue.Field) bool { return k.Name == *p[n].FieldName })
}

// followItem finds the item with the keys of the element. If a side has several, it returns the list with these items only (D5).
func (t transfer) followItem(p place, e fieldpath.PathElement) (item place, several *place) {
	var like *value
	if e.Value != nil {
		like = fromSMD(*e.Value)
	} else {
		like = &value{kind: object}
		for _, f := range *e.Key {
			like.members = append(like.members, member{f.Name, fromSMD(f.Value)})
		}
	}
	find := func(v *value) (found []*value) {
		id, ok := t.identity(p.atom.List, like)
		for _, item := range itemsOf(v) {
			if other, keyed := t.identity(p.atom.List, item); ok && keyed && id == other {
				found = append(found, item)
			}
		}
		return found
	}
	olds, news := find(p.old), find(p.new)
	if len(olds) > 1 || len(news) > 1 {
		p.old, p.new = &value{kind: list, items: olds}, &value{kind: list, items: news}
		return place{}, &p
	}
	old, new := first(olds), first(news)
	for _, found := range []*value{old, new} {
		if found != nil {
			like = found
		}
	}
	next := t.item(p, like, old, new)
	if old == nil && new == nil && like.isScalar() {
		// A value that is missing on both sides still has the verb of that value.
		next = next.emitting(like)
	}
	return next, nil
}

func itemAt(v *value, i int) *value {
	if items := itemsOf(v); i >= 0 && i < len(items) {
		return items[i]
	}
	return nil
}

// changedAt reports whether a place changed. It ignores fields with a role, because they change in nearly every request.
func (t transfer) changedAt(p place) bool {
	if t.same(p.old, p.new) || p.node.Role() == schema.RoleServerWritten || p.node.Role() == schema.RoleOwnership {
		return false
	}
	if p.atom.Map == nil || !p.old.is(object) || !p.new.is(object) || p.old.repeats() || p.new.repeats() {
		return true
	}
	for _, name := range append(p.old.names(), p.new.names()...) {
		if t.changedAt(t.member(p, name, p.old.get(name), p.new.get(name))) {
			return true
		}
	}
	return false
}

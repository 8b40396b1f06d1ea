package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm/internal/walk"
	"github.com/fieldperm/fieldperm/test/previous/schema"
)

// hasItem reports whether a set owns an item. The path is the last that was resolved, or the last path was the item's own entry or key.
func (o *owners) hasItem(set *smdpath.Set, item smdpath.Path) bool {
	last := len(item) - 1
	for i := range item[:last] {
		set = under(set, item[i])
	}
	return o.hasMember(set, &item[last], o.d.Points()[last-1].Scope.Node.List())
}

// hasMember reports whether a set owns a member of an object or an item of a list. An item is owned only if its own entry and all its
// keys are owned, because structured-merge-diff does not keep the item otherwise. A key that has its default value needs no owner.
func (o *owners) hasMember(set *smdpath.Set, element *smdpath.PathElement, list *schema.List) bool {
	if !set.Members.Has(*element) {
		return false
	}
	if element.Key == nil || list != nil && !hasParts(list.Item()) {
		return true
	}
	below := under(set, *element)
	return !slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
		return !below.Members.Has(smdpath.PathElement{FieldName: &key.Name}) && !o.d.IsDefault(list, &key)
	})
}

// hasParts reports whether owners name the parts of an item. An atomic item has no parts.
func hasParts(item *schema.Node) bool { return item.Map() != nil && !item.Map().Atomic() }

// chargeBrokenItems charges the whole object where a manager comes to own an item without its keys, or a key without the item. No API
// server writes such owners. It either fails on every apply of such a manager or drops the item.
func (o *owners) chargeBrokenItems(who manager, changed ...*smdpath.Set) {
	after, e := o.is.fields(who), o.is.entry(who)
	if e == nil {
		return
	}
	root := o.d.Kind.Root
	if their := o.d.Kind.In(e.wroteIn); their != nil {
		root = their.Root
	}
	for _, set := range changed {
		for p := range paths(set) {
			if o.d.Stops() {
				return
			}
			first := len(p) - 1
			switch {
			case who.operation == operationApply && after.Has(p):
				first = 0
			case walk.IsKey(p):
				first--
			}
			if o.breaksItem(after, p, first, root, who.operation) {
				o.chargeAll(who)
			}
		}
	}
}

// breaksItem reports whether an item on a path is broken, from index first of the path on. n is the node at which the path starts.
func (o *owners) breaksItem(set *smdpath.Set, p smdpath.Path, first int, n *schema.Node, operation string) bool {
	if !slices.ContainsFunc(p[first:], func(element smdpath.PathElement) bool { return element.Key != nil }) {
		return false
	}
	for i := range p {
		if i >= first && p[i].Key != nil {
			var list *schema.List
			if n != nil {
				list = n.List()
			}
			if o.isBroken(set, &p[i], list, operation) {
				return true
			}
		}
		set, n = under(set, p[i]), nodeBelow(n, &p[i])
	}
	return false
}

// isBroken reports whether the own entry and the keys of an item are owned incompletely: one without the others, or, for an applier,
// parts of the item without its own entry. If keys do not tell items apart, an API server writes the own entry alone. set is the owned
// paths in the list; list is nil if it is not known.
func (o *owners) isBroken(set *smdpath.Set, item *smdpath.PathElement, list *schema.List, operation string) bool {
	below := under(set, *item)
	switch {
	case set.Members.Has(*item):
		return !below.Empty() && !o.hasMember(set, item, list)
	case operation == operationApply:
		return !below.Empty()
	}
	return slices.ContainsFunc(*item.Key, func(key smdvalue.Field) bool {
		return below.Members.Has(smdpath.PathElement{FieldName: &key.Name})
	})
}

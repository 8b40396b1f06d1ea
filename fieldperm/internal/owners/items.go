package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/schema"
)

// breaksItem reports whether a manager comes to own an item without its keys, a key without its item, or, if it applies, something else in
// an item without the item. No API server writes such owners. It either fails on every apply of such a manager, or drops the item.
func (o *owners) breaksItem(who manager, before, after *smdpath.Set) bool {
	e := o.is.entry(who)
	if e == nil {
		return false
	}
	kind := o.d.Kind.In(e.wroteIn)
	if kind == nil {
		kind = o.d.Kind
	}
	return o.breaks(who.operation == operationApply, kind.Root, before, after)
}

// breaks is breaksItem for the sets below a node, nil if it is not known.
func (o *owners) breaks(applies bool, n *schema.Node, before, after *smdpath.Set) (broken bool) {
	after.Children.Iterate(func(e smdpath.PathElement) {
		was, is := under(before, e), under(after, e)
		if broken || o.d.Stops() || was.Equals(is) && before.Members.Has(e) == after.Members.Has(e) {
			return
		}
		broken = e.Key != nil && o.isBroken(applies, n, &e, after.Members.Has(e), is) || o.breaks(applies, nodeBelow(n, &e), was, is)
	})
	return broken
}

// isBroken reports whether the own entry and the keys of an item are owned incompletely. within is what is owned in the item. If keys do not
// tell items apart, an API server writes the own entry alone.
func (o *owners) isBroken(applies bool, list *schema.Node, item *smdpath.PathElement, own bool, within *smdpath.Set) bool {
	isOwned := func(key smdvalue.Field) bool { return within.Members.Has(smdpath.PathElement{FieldName: &key.Name}) }
	if own {
		return slices.ContainsFunc(*item.Key, func(key smdvalue.Field) bool {
			return !isOwned(key) && !(list != nil && o.d.IsDefault(list.List(), &key))
		})
	}
	return applies || slices.ContainsFunc(*item.Key, isOwned)
}

// nodeBelow returns the node that an element leads to, nil if there is none.
func nodeBelow(n *schema.Node, e *smdpath.PathElement) *schema.Node {
	switch {
	case n == nil:
	case e.FieldName != nil && n.Map() != nil:
		child, _ := n.Map().Lookup([]byte(*e.FieldName))
		return child
	case e.FieldName == nil && n.List() != nil:
		return n.List().Item()
	}
	return nil
}

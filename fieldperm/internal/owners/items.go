package owners

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// breaksItem reports whether an entry comes to own an item without its keys, a key without its item, or, if its manager applies, something else
// in an item without the item. No API server writes such owners. It either fails on every apply of such a manager, or drops the item. If keys do
// not tell items apart, an API server writes the own entry alone. The sets are those at a path before and after.
func (o *owners) breaksItem(e *managedEntry, at smdpath.Path, before, after *smdpath.Set) (broken bool) {
	after.Children.Iterate(func(element smdpath.PathElement) {
		was, is, own := under(before, element), under(after, element), after.Members.Has(element)
		if broken || o.d.Stops() || was.Equals(is) && before.Members.Has(element) == own {
			return
		}
		if element.Key != nil {
			broken = !own && e.operation == operationApply || slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
				isOwned := is.Members.Has(smdpath.PathElement{FieldName: &key.Name})
				return isOwned != own && !(own && o.isDefault(e, at, &key))
			})
		}
		broken = broken || o.breaksItem(e, append(at[:len(at):len(at)], element), was, is)
	})
	return broken
}

// isDefault reports whether a key of an item has its default, which needs no owner, in the version of an entry.
func (o *owners) isDefault(e *managedEntry, list smdpath.Path, key *smdvalue.Field) bool {
	kind := o.d.Kind.In(e.wroteIn)
	if kind == nil {
		kind = o.d.Kind
	}
	at := o.d.Follow(kind, rawjson.Value{}, list)
	return !at.End && o.d.IsDefault(at.Place.Node.List(), key)
}

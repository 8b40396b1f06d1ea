package schema

import (
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// folds reports whether programs that decode an object may ignore the case of its names: where it keeps unknown fields, nobody knows whether it is a
// struct or a map. Where the catalogue gives the names to verbs as parameters, they are keys of a map, such as labels.
func (b *builder) folds(m *smd.Map, o *overlay) bool {
	return hasValues(m) && !o.hasKeys() && b.isUnknown(m.ElementType)
}

// hasKeys reports whether the catalogue says that the names are keys of a map: the map emits them as a parameter. An entry of the catalogue for
// all items of a list does not say so, and a document may include it anywhere.
func (o *overlay) hasKeys() bool {
	if o.items() == nil || !o.any.catalogued {
		return false
	}
	return slices.ContainsFunc(o.emitters, func(g *guard) bool { return g.rank <= RankCatalogue || g.isIncluded() })
}

package schema

import (
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// folds reports whether programs that decode an object may ignore the case of its names: where it keeps unknown fields, nobody knows whether it is a
// struct or a map. In templates of custom resources it folds also where the values have a type, because such a type says nothing about names. Where the catalogue gives the names to verbs as parameters, they are keys of a map, such as labels.
func (b *builder) folds(m *smd.Map, o *overlay, p place) bool {
	if !hasValues(m) || o.hasKeys() {
		return false
	}
	return b.isUnknown(m.ElementType) || b.topology.JSON && o != nil && len(o.fields) > 0 && (p.inPod || o.pod != NoPod || o.namesLeadToPods())
}

// hasKeys reports whether the catalogue says that the names are keys of a map: the map emits them as a parameter. An entry of the catalogue for
// all items of a list does not say so, and a document may include it anywhere.
func (o *overlay) hasKeys() bool {
	if o.items() == nil || !o.any.catalogued {
		return false
	}
	return slices.ContainsFunc([]*guard{o.guard, o.included, o.emitter}, func(g *guard) bool {
		return g != nil && g.entry.ParameterSource != "" && (g.rank <= RankCatalogue || g.isIncluded())
	})
}

// leadsToPods reports whether something at or below the overlay becomes a part of Pods.
func (o *overlay) leadsToPods() bool {
	return o != nil && (o.pod != NoPod || o.any.leadsToPods() || o.namesLeadToPods())
}

// namesLeadToPods reports whether something below an entry for one name becomes a part of Pods, so that the name is one of a field.
func (o *overlay) namesLeadToPods() bool {
	for _, below := range o.fields {
		if below.leadsToPods() {
			return true
		}
	}
	return false
}

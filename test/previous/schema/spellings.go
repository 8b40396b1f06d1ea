package schema

import (
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// Programs that decode an object may ignore the case of the names of its fields. An entry for one spelling of a name lifts no barrier of an entry for
// another one, and neither does an entry for all names: where an object keeps unknown fields, nobody knows whether it is a struct or a map.

// mostSpellings is how many spellings of one name may have entries. Each has the barriers of the others.
const mostSpellings = 8

// folds reports whether a name in an object counts in every case. In templates of custom resources it does so also where the values have a type,
// because such a type says nothing about names. Where the catalogue gives the names to verbs as parameters, they are keys of a map, such as labels.
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

// spellings returns the names with entries by folded name, each list in order. It is nil if the names do not fold.
func (o *overlay) spellings(folds bool) map[string][]string {
	if o == nil || !folds {
		return nil
	}
	out := make(map[string][]string, len(o.fields))
	for _, name := range sortedKeys(o.fields) {
		folded := FoldName(name)
		out[folded] = append(out[folded], name)
	}
	return out
}

// otherwise returns the verbs of the other spellings of a name, nil for none. alike is the result of spellings.
func (o *overlay) otherwise(name string, alike map[string][]string) *overlay {
	names := alike[FoldName(name)]
	if len(names) > mostSpellings {
		return nil
	}
	var out *overlay
	for _, other := range names {
		if other != name {
			out = out.bearing(o.fields[other].beside())
		}
	}
	return out.bearing(o.otherPrefixes(name, alike))
}

// otherPrefixes returns the verbs of the prefix of a name in its other spellings, nil for none.
func (o *overlay) otherPrefixes(name string, alike map[string][]string) *overlay {
	var out *overlay
	if prefix, has := prefixIn(name); has {
		for _, other := range alike[FoldName(prefix)] {
			if other != prefix {
				out = out.bearing(o.fields[other].beside())
			}
		}
	}
	return out
}

// beside returns what becomes a part of Pods, and the verbs, at and below an overlay in lines of their own that end there: its barriers, which may be
// those of sets, hold beside everything that is said about another name, and no verb of another name passes them. It returns nil if there are none.
func (o *overlay) beside() *overlay {
	if o == nil {
		return nil
	}
	out := &overlay{podMark: o.podMark, podGuards: podGuards{derived: slices.Clone(o.derived)}, any: o.any.beside()}
	for _, chain := range [][]*guard{append(slices.Clone(o.general), o.guard), o.pods} {
		var line []*guard
		for _, g := range chain {
			if g != nil && g.entry.Verb != "" {
				line = append(line, g.lend(""))
			}
		}
		if len(line) > 0 {
			out.derived = append(out.derived, line)
		}
	}
	for name, below := range o.fields {
		if verbs := below.beside(); verbs != nil {
			if out.fields == nil {
				out.fields = map[string]*overlay{}
			}
			out.fields[name] = verbs
		}
	}
	if out.pod == NoPod && out.any == nil && len(out.derived)+len(out.fields) == 0 {
		return nil
	}
	return out
}

// spell builds the nodes of other spellings. The API server knows nothing about the value of such a name: it has the verbs of the first spelling and
// no type of it, or those of all names and, in a line of their own, those of the spellings.
func (b *builder) spell(m *Map, atom *smd.Map, o *overlay, alike map[string][]string, p place) {
	for _, folded := range sortedKeys(alike) {
		names := alike[folded]
		if len(names) > mostSpellings {
			// An overlay without guards only notes a document.
			for _, name := range names {
				if all := o.fields[name].guards(); len(all) > 0 {
					b.errs = append(b.errs, all[0].fault("%s: %q has more than %d spellings: leave some out", orRoot(b.at), name, mostSpellings))
				}
			}
			continue
		}
		var n *Node
		prefix := o.prefixOf(names[0])
		switch key := m.keys[names[0]]; {
		case o.any != nil:
			// A key has the verbs of its prefix before those of all keys.
			others := o.any
			if prefix != nil {
				others = merge(prefix, o.any, true)
			}
			var own *overlay
			for _, name := range names {
				own = own.bearing(o.fields[name].beside())
			}
			if own == nil {
				continue
			}
			own = own.bearing(o.otherPrefixes(names[0], alike))
			n = b.below(fieldpath.Element{Name: names[0]}, atom.ElementType, others.bearing(own), nil, p)
		case key != nil && prefix == nil:
			n = key
		default:
			// An entry for a key takes this spelling out of the barrier of its prefix, and no other.
			own := o.fields[names[0]].untyped().bearing(o.otherwise(names[0], alike))
			n = b.below(fieldpath.Element{Name: names[0]}, atom.ElementType, own.bearing(prefix.beside()), nil, p)
		}
		if m.spellings == nil {
			m.spellings = make(map[string]*Node, len(alike))
		}
		m.spellings[folded] = n
	}
}

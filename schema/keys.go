package schema

import (
	"slices"
	"strings"
)

// A map has entries for all keys, for those that begin with a prefix, and for single ones. The claim of a key is that of the most specific pattern.
// The barriers of all hold. The verb that a document gives to a key passes the barriers that the same document has on wider patterns.

// singleOut returns the overlay of one named key of a map. If a key has only recorded writes, it has the claim of its prefix.
func (o *overlay) singleOut(name string) *overlay {
	own := narrow(o.fields[name], o.prefixOf(name))
	if o.any == nil {
		return own
	}
	out := *narrow(own, o.any)
	out.written, out.key = own.written, ""
	return &out
}

// prefixOf returns the overlay of the prefix of a key, nil for none.
func (o *overlay) prefixOf(name string) *overlay {
	if prefix, has := prefixIn(name); has {
		return o.fields[prefix]
	}
	return nil
}

// prefixIn returns the prefix of a key with its slash, and false if the key has none or is one.
func prefixIn(name string) (string, bool) {
	i := strings.IndexByte(name, '/')
	return name[:i+1], i >= 0 && i < len(name)-1
}

// permissionsOf returns the permissions of an overlay. Those of wider patterns than that of the claim come first, and only bar. The last ones are
// barriers beside the claim.
func (b *builder) permissionsOf(o *overlay, p place) []*Permission {
	levels := make([]fitting, len(o.general)+1)
	last := -1
	for i, l := range o.levels() {
		if levels[i] = b.fitLevel(l, p); levels[i].claim != nil {
			last = i
		}
	}
	var out, beside []*Permission
	for i, l := range levels {
		counts := l.claim
		for _, g := range l.barriers {
			switch {
			case i < last && levels[last].says(g.source):
				out = b.append(out, barsOnly, g)
			case i < last || counts == nil || !counts.sameVerb(g):
				beside = b.append(beside, barsBeside, g)
			default:
				counts = counts.joined(g)
			}
		}
		if i < last && counts != nil {
			// Of the claim of a wider pattern, only barriers of sets hold besides.
			out = b.append(out, barsOnly, counts.unbarred())
		} else if i == last {
			out = b.append(out, covers, counts)
		}
	}
	return append(out, beside...)
}

// append compiles a guard, and adds it in a mode. The guard may be nil.
func (b *builder) append(out []*Permission, m mode, g *guard) []*Permission {
	one := b.permission(g)
	if one != nil && m != covers {
		one = b.permissions.in(m, one)
	}
	if one == nil || slices.Contains(out, one) {
		return out
	}
	return append(out, one)
}

// fitting is a level as it holds at a place.
type fitting struct {
	claim *guard
	// entries are those with the verb of the claim, barriers all that are barriers.
	entries, barriers []*guard
}

func (b *builder) fitLevel(l level, p place) fitting {
	out := fitting{claim: b.fit(l.claim, p)}
	for _, g := range l.entries {
		if g != l.claim && !g.bars() {
			if out.claim != nil && g.entry.Verb == out.claim.entry.Verb {
				out.entries = append(out.entries, g)
			}
			continue
		}
		if g = b.fit(g, p); g == nil {
			continue
		}
		if out.claim != nil && out.claim.sameVerb(g) {
			out.entries = append(out.entries, g)
		}
		if g.bars() {
			out.barriers = append(out.barriers, g)
		}
	}
	return out
}

// says reports whether a document gives the place the verb of the claim. Then the verb passes the barriers that the document has on wider patterns.
func (l fitting) says(source string) bool {
	return slices.ContainsFunc(l.entries, func(g *guard) bool { return g.source == source })
}

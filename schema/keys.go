package schema

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// A map has entries for all keys, for those that begin with a prefix, and for single ones. The claim of a key is that of the most specific pattern.
// The barriers of all hold, each beside the others.

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

// permissionsOf returns the permissions of an overlay. Claims of wider patterns than that of the claim that counts come first. The last ones are barriers
// beside it.
func (b *builder) permissionsOf(o *overlay, p place) []*Permission {
	levels := o.levels()
	claims := make([]*guard, len(levels))
	last := -1
	for i, l := range levels {
		if claims[i] = b.fit(l.claim, p); claims[i] != nil {
			last = i
		}
	}
	var out, beside []*Permission
	for i, l := range levels {
		counts := claims[i]
		for _, g := range l.barriers {
			switch g = b.fit(g, p); {
			case g == nil:
			case i == last && counts.sameVerb(g):
				counts = counts.joined(g)
			default:
				beside = b.append(beside, barsBeside, g)
			}
		}
		switch {
		case counts == nil:
		case i == last:
			out = b.append(out, covers, counts)
		default:
			// Of the claim of a wider pattern, only barriers of sets hold.
			out = b.append(out, barsOnly, counts.unbarred())
		}
	}
	if len(beside) > mostBeside {
		b.errs = append(b.errs, o.tooManyBarriers(b.at))
	}
	return append(out, beside...)
}

// mostBeside is how many barriers with different verbs may hold at one place. A change needs a check for each (P3).
const mostBeside = 16

// tooManyBarriers returns the fault of the document with the most barriers at a place.
func (o *overlay) tooManyBarriers(at fieldpath.Pattern) error {
	count := map[string]int{}
	var most *guard
	for _, l := range o.levels() {
		for _, g := range l.barriers {
			if count[g.blamed()]++; most == nil || count[g.blamed()] > count[most.blamed()] {
				most = g
			}
		}
	}
	return most.fault("%s: has more than %d barriers with different verbs: agree on one verb", orRoot(at), mostBeside)
}

// append compiles a guard, and adds it in a mode.
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

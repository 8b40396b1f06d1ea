package schema

import (
	"cmp"
	"slices"
	"strings"
)

// A map has entries for all keys, for those that begin with a prefix, and for single ones. What is more specific counts, and lifts no barrier of
// another document.

// singleOut returns the overlay of one named key of a map. Its guards are, from general to specific, those of all values, those of its
// prefix, and its own. The own guard takes the place of that of the prefix, unless that is a barrier that holds beside it. If a key has only
// recorded writes, it has the guard of its prefix.
func (o *overlay) singleOut(name string) *overlay {
	own := o.fields[name]
	out := *own
	out.key = ""
	if prefix := o.prefixOf(name); prefix != nil {
		out = *merge(own, prefix, true)
		out.guard, out.general = cmp.Or(own.guard, prefix.guard), prefix.general
		if own.guard != nil && prefix.guard != nil && prefix.holdsBeside(own) {
			out.general = slices.Concat(out.general, []*guard{prefix.guard})
		}
		out.general = slices.Concat(out.general, own.general)
	}
	if o.any == nil {
		return &out
	}
	m := merge(&out, o.any, true)
	m.guard, m.written = out.guard, out.written
	m.general = slices.Concat(o.any.general, []*guard{o.any.guard}, out.general)
	return m
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

// holdsBeside reports whether the overlay of a prefix, or of all keys, has a barrier that an entry for one key does not replace: one of a higher
// standing, or one of a document that says nothing about the key.
func (o *overlay) holdsBeside(key *overlay) bool {
	return o.guard.bars() && (o.guard.standing() > key.guard.standing() ||
		slices.ContainsFunc(o.barredBy, func(document int) bool { return !slices.Contains(key.saidBy, document) }))
}

// claims returns the permissions of an overlay. Those of all keys and of the prefix come first, and only bar. The next one is its claim. The last ones
// are barriers beside it.
func (b *builder) claims(o *overlay, p place) []*Permission {
	out := b.compiled(append(slices.Clone(o.general), o.guard), p)
	for i := range len(out) - 1 {
		out[i] = b.permissions.in(barsOnly, out[i])
	}
	for _, g := range o.beside {
		if barrier := b.permission(g, p); barrier != nil && !o.guard.hasBarrierOf(g) {
			out = append(out, b.permissions.in(barsBeside, barrier))
		}
	}
	return out
}

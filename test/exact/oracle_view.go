package exact

import (
	"math"
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
)

// tokens are scalars that replace values that Compare cannot hold or cannot tell apart. A number that is no int64 becomes an integer of its
// own, because Compare reads such numbers as float64.
type tokens struct {
	numbers map[string]int64
	back    map[int64]string
}

// numberTokens is the start of their range: the generator draws no number near it.
const numberTokens = math.MinInt64 + 1_000_000

func newTokens(values ...*value) tokens {
	t := tokens{numbers: map[string]int64{}, back: map[int64]string{}}
	for _, v := range values {
		t.add(v)
	}
	return t
}

func (t tokens) add(v *value) {
	if v.is(number) {
		if _, fits := integer(v.text); !fits && t.numbers[normal(v.text)] == 0 {
			id := int64(numberTokens + len(t.numbers))
			t.numbers[normal(v.text)], t.back[id] = id, v.text
		}
	}
	if v == nil {
		return
	}
	for _, item := range v.items {
		t.add(item)
	}
	for _, m := range v.members {
		t.add(m.value)
	}
}

const tokenPrefix = "\x00token:"

// token represents a value as one scalar, which is equal for equal values.
func (o *oracle) token(v *value) any {
	if v == nil {
		return nil
	}
	return tokenPrefix + o.text(v)
}

// scalarView leaves scalars as they are and represents all other values as a token. null has a token of its own: Compare accepts it for any
// type, and treats it as empty.
func (o *oracle) scalarView(v *value) any {
	switch {
	case v.is(boolean), v.is(text):
		return v.native()
	case v.is(number):
		if i, ok := integer(v.text); ok {
			return i
		}
		return o.tokens.numbers[normal(v.text)]
	}
	return o.token(v)
}

// views returns the representations of both values of a place for Compare, nil for a missing value. On its way it finds the cases that
// Compare does not handle: changed values that do not fit, lists whose keys do not identify their items, new orders.
func (o *oracle) views(p place) (before, after any) {
	if p.path != "" && o.free(p) {
		if (p.node.Role() == schema.RoleOwnership || o.stored != nil && p.path == ownersPath) && !o.same(p.old, p.new) {
			o.owned = &p
		}
		return o.token(p.old), o.token(p.new)
	}
	if !o.same(p.old, p.new) && (o.misfit(p, p.old) || o.misfit(p, p.new)) {
		return nil, nil
	}
	switch old, new := p.forms(); {
	case old <= leaf && new <= leaf:
		return o.leafView(p, p.old), o.leafView(p, p.new)
	case old != new && old != absent && new != absent:
		// The old value disappears, and a value of another form appears.
		before, _ = o.views(p.half(p.old, nil))
		_, after = o.views(p.half(nil, p.new))
		return before, after
	case old == members || new == members:
		return o.memberViews(p)
	default:
		return o.listViews(p)
	}
}

// half is the same place with other values. Its verbs and its barrier stay.
func (p place) half(old, new *value) place {
	p.old, p.new = old, new
	return p
}

func (o *oracle) memberViews(p place) (any, any) {
	before, after := map[string]any{}, map[string]any{}
	for _, name := range p.memberNames() {
		was, is := p.old.get(name), p.new.get(name)
		b, a := o.views(o.member(p, name, was, is))
		if was != nil {
			before[name] = b
		}
		if is != nil {
			after[name] = a
		}
	}
	return unlessAbsent(p.old, before), unlessAbsent(p.new, after)
}

func unlessAbsent(v *value, view any) any {
	if v == nil {
		return nil
	}
	return view
}

// leafView keeps the containers that Compare also treats as leaves, empty and atomic ones, with scalars inside: below them Compare compares
// only values.
func (o *oracle) leafView(p place, v *value) any {
	switch {
	case v.is(object) && p.atom.Map != nil:
		out := map[string]any{}
		for _, m := range v.members {
			out[m.name] = o.scalarView(m.value)
		}
		return out
	case v.is(list) && p.atom.List != nil:
		out := []any{}
		for _, item := range v.items {
			out = append(out, o.scalarView(item))
		}
		return out
	}
	return o.scalarView(v)
}

// listViews returns the representations of keyed lists. If the keys do not identify the items, both lists become scalars (D5).
func (o *oracle) listViews(p place) (any, any) {
	l := p.atom.List
	was, wasOrder, wasKeyed := o.byKey(l, p.old)
	is, isOrder, isKeyed := o.byKey(l, p.new)
	if !wasKeyed || !isKeyed {
		return o.token(p.old), o.token(p.new)
	}
	ambiguous, seen := false, map[string]bool{}
	before, after := map[*value]any{}, map[*value]any{}
	for _, id := range slices.Concat(wasOrder, isOrder) {
		old, new := was[id], is[id]
		if len(old) == 1 && len(new) == 1 && len(l.Keys) > 0 {
			if !seen[id] {
				before[old[0]], after[new[0]] = o.views(o.item(p, new[0], old[0], new[0]))
			}
			seen[id] = true
			continue
		}
		// Items that appear or disappear, or share a key, are represented as a whole.
		ambiguous = ambiguous || max(len(old), len(new)) > 1 && !o.sameItems(old, new)
		for _, item := range old {
			before[item] = o.itemView(l, item)
		}
		for _, item := range new {
			after[item] = o.itemView(l, item)
		}
		if len(old)+len(new) == 1 {
			item := slices.Concat(old, new)[0]
			o.misfit(o.item(p, item, first(old), first(new)), item)
		}
	}
	if !ambiguous && p.old.is(list) && p.new.is(list) && !slices.Equal(staying(wasOrder, is), staying(isOrder, was)) {
		o.charge(p, reordered)
	}
	return show(p.old, before), show(p.new, after)
}

func first(items []*value) *value {
	if len(items) == 0 {
		return nil
	}
	return items[0]
}

func show(v *value, views map[*value]any) any {
	if v == nil {
		return nil
	}
	out := []any{}
	for _, item := range v.items {
		if view, ok := views[item]; ok {
			out = append(out, view)
		}
	}
	return out
}

// itemView represents an item that is compared as a whole: its keys, and the whole item as one scalar.
func (o *oracle) itemView(l *smd.List, item *value) any {
	if len(l.Keys) == 0 {
		return o.scalarView(item)
	}
	out := map[string]any{tokenPrefix: o.token(item)}
	for _, k := range l.Keys {
		if v := item.get(k); v != nil {
			out[k] = o.scalarView(v)
		}
	}
	return out
}

func (o *oracle) sameItems(a, b []*value) bool { return slices.EqualFunc(a, b, o.same) }

func staying(order []string, other map[string][]*value) []string {
	return slices.DeleteFunc(slices.Clone(order), func(id string) bool { return len(other[id]) == 0 })
}

// misfit records that a changed value has a form that its type does not allow.
func (o *oracle) misfit(p place, v *value) bool {
	if v == nil || v.kind == null || v.isScalar() && p.atom.Scalar != nil || v.is(object) && p.atom.Map != nil || v.is(list) && p.atom.List != nil {
		return false
	}
	o.refused = append(o.refused, p.path)
	return true
}

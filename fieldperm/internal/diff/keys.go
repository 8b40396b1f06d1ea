package diff

import (
	"slices"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// maxKeys is how many keys of an item are compared without allocating memory. An item with more keys is supported too.
const maxKeys = 4

// identity distinguishes the items of a list: the values of the keys, or the item of a set itself.
type identity struct {
	few  [maxKeys]rawjson.Value
	many []rawjson.Value
	n    int
}

func (i *identity) values() []rawjson.Value {
	if i.many != nil {
		return i.many
	}
	return i.few[:i.n]
}

// identify returns the identity of an item. It reports false if the keys do not identify the item: it is not an object, a key is not a
// scalar, or no key is present.
func (d *Differ) identify(keys []schema.Key, item rawjson.Value) (identity, bool) {
	var id identity
	if len(keys) == 0 {
		id.n, id.few[0] = 1, item
		return id, true
	}
	if !item.IsObject() {
		return id, false
	}
	if id.n = len(keys); id.n > maxKeys {
		id.many = make([]rawjson.Value, id.n)
	}
	present := false
	for i := range keys {
		v, once := d.keyValue(&keys[i], item)
		if !once || !v.IsAbsent() && !v.IsScalar() {
			return identity{}, false
		}
		id.values()[i] = v
		present = present || !v.IsAbsent()
	}
	return id, present
}

func (d *Differ) sameIdentity(a, b *identity) bool {
	x, y := a.values(), b.values()
	for i := range x {
		if i >= len(y) || !d.keys.Equal(x[i], y[i]) {
			return false
		}
	}
	return len(x) == len(y)
}

// sum returns a hash. Equal identities have equal sums.
func (i *identity) sum() uint64 {
	var sum uint64
	for _, v := range i.values() {
		sum = sum*0x9e3779b97f4a7c15 + v.Sum()
	}
	return sum
}

// keyValue returns the value of a key, or its default, and whether the key occurs at most once.
func (d *Differ) keyValue(k *schema.Key, item rawjson.Value) (rawjson.Value, bool) {
	v, n := item.Find(k.Name)
	if n > 0 || k.Default == nil {
		return v, n <= 1
	}
	for i := range d.keyDefaults {
		if d.keyDefaults[i].key == k {
			return d.keyDefaults[i].value, true
		}
	}
	// Paths refer to the default, so its document is not released.
	if doc, err := rawjson.Scan(k.Default); err == nil {
		v = doc.Root()
	}
	d.keyDefaults = append(d.keyDefaults, keyDefault{k, v})
	return v, true
}

// keyDefault is the default of a list-map's key, scanned.
type keyDefault struct {
	key   *schema.Key
	value rawjson.Value
}

// grouping is the items of two lists by their keys.
type grouping struct {
	d      *Differ
	keys   []schema.Key
	items  []groupItem
	groups []itemGroup
	// bySum is the latest group of a sum; the field next leads to other groups of the same sum.
	bySum map[uint64]int32
	// olds is the index of the first item of the old list.
	olds int
}

// group returns a grouping with room for the items of two lists.
func (d *Differ) group(keys []schema.Key, old, new rawjson.Value) *grouping {
	olds, news := count(old), count(new)
	groups := max(olds, news) // Most items are in both lists, or one list is empty.
	return &grouping{d: d, keys: keys, items: make([]groupItem, 0, olds+news), groups: make([]itemGroup, 0, groups), bySum: make(map[uint64]int32, groups)}
}

// groupItem is an item with its group and the next item of that group and side, -1 for none.
type groupItem struct {
	value       rawjson.Value
	group, next int32
}

// itemGroup is the items of one identity. The identity is not stored but read from any of the items, because a list may have a million.
type itemGroup struct {
	was, is side
	next    int32
}

// side is the items of a group on one side, by their indexes in items.
type side struct{ first, last, n int32 }

// add groups the items of a list; a value that is not a list has none. It reports false if an item cannot be identified.
func (g *grouping) add(list rawjson.Value, isNew bool) bool {
	g.olds = len(g.items)
	for i := list.Items(); i.Next(); {
		id, ok := g.d.identify(g.keys, i.Value())
		if !ok {
			return false
		}
		at := g.group(&id)
		items := &g.groups[at].was
		if isNew {
			items = &g.groups[at].is
		}
		place := int32(len(g.items)) //nolint:gosec // A list has fewer items than bytes.
		g.items = append(g.items, groupItem{i.Value(), at, -1})
		if items.n == 0 {
			items.first = place
		} else {
			g.items[items.last].next = place
		}
		items.last = place
		items.n++
	}
	return true
}

// group returns the group of an identity, a new one if there is none.
func (g *grouping) group(id *identity) int32 {
	sum := id.sum()
	latest, known := g.bySum[sum]
	if !known {
		latest = -1
	}
	for at := latest; at >= 0; at = g.groups[at].next {
		group := &g.groups[at]
		first := group.is.first
		if group.is.n == 0 {
			first = group.was.first
		}
		if known, _ := g.d.identify(g.keys, g.items[first].value); g.d.sameIdentity(&known, id) {
			return at
		}
	}
	at := int32(len(g.groups)) //nolint:gosec // A list has fewer items than bytes.
	g.groups = append(g.groups, itemGroup{next: latest})
	g.bySum[sum] = at
	return at
}

// single returns the number of groups that are on one side only.
func (g *grouping) single() uint32 {
	n := uint32(0)
	for i := range g.groups {
		if g.groups[i].was.n == 0 || g.groups[i].is.n == 0 {
			n++
		}
	}
	return n
}

func (g *grouping) values(m side) []rawjson.Value {
	var out []rawjson.Value
	for at, n := m.first, m.n; n > 0; at, n = g.items[at].next, n-1 {
		out = append(out, g.items[at].value)
	}
	return out
}

// reordered reports whether the items that stay are in another order.
func (g *grouping) reordered() bool {
	news, olds := g.items[:g.olds], g.items[g.olds:]
	stays := func(i groupItem) bool { return g.groups[i.group].was.n > 0 && g.groups[i.group].is.n > 0 }
	for {
		i, j := slices.IndexFunc(news, stays), slices.IndexFunc(olds, stays)
		if i < 0 || j < 0 {
			return i != j
		}
		if news[i].group != olds[j].group {
			return true
		}
		news, olds = news[i+1:], olds[j+1:]
	}
}

func (d *Differ) equalItems(a, b []rawjson.Value) bool {
	return slices.EqualFunc(a, b, d.Same.Equal)
}

package plain

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// items compares list-maps and sets. One side may be absent or a leaf that stands for no items.
func (d *differ) items(s scope, old, new *value) {
	list := s.node.List()
	was, wasKeyed := groupItems(list, old)
	is, isKeyed := groupItems(list, new)
	if !wasKeyed || !isKeyed {
		// D5: without keys there is no telling which item became which.
		d.charge(s, operation(old, new))
		d.barriersWithin(s, old, new)
		return
	}
	ambiguous := false
	for _, key := range unionOrder(is, was) {
		before, after := was.by[key], is.by[key]
		switch {
		case len(before) > 1 || len(after) > 1:
			if slices.EqualFunc(before, after, equal) {
				continue
			}
			if !ambiguous {
				ambiguous = true
				d.charge(s, operation(old, new))
			}
			d.pairwise(s, before, after)
		case len(before) == 0:
			d.item(s, nil, after[0], d.membership)
		case len(after) == 0:
			d.item(s, before[0], nil, d.membership)
		default:
			d.item(s, before[0], after[0], d.walk)
		}
	}
	// D3: only items that stay have an order to change.
	if !ambiguous && !slices.Equal(was.staying(is), is.staying(was)) {
		d.charge(s, fieldperm.Reordered)
	}
}

// membership charges an item that appears or disappears, and the barriers inside it (D2).
func (d *differ) membership(s scope, old, new *value) {
	if !d.fits(s, old) || !d.fits(s, new) {
		return
	}
	d.charge(s, operation(old, new))
	d.barriersWithin(s, old, new)
}

// item enters the node of one item with what its keys emit.
func (d *differ) item(s scope, old, new *value, visit func(scope, *value, *value)) {
	v := new
	if v == nil {
		v = old
	}
	path, emitted := itemStep(s, v)
	if !equal(old, new) {
		d.child(s, s.node.List().Item(), path, emitted, old, new, visit)
	}
}

// itemStep returns the path of an item and the parameters that its keys emit.
func itemStep(s scope, v *value) (fieldperm.Path, *binding) {
	emitted := s.emitted
	var keys []fieldperm.PathKey
	for _, k := range s.node.List().Keys() {
		property := keyValue(k, v)
		keys = append(keys, fieldperm.PathKey{Name: k.Name, Value: property.spelled()})
		if property.isScalar() {
			emitted = emitted.with(k.Emits, property.spell())
		} else {
			// The same name further out is another item's: no verb takes "" as a parameter.
			emitted = emitted.with(k.Emits, "")
		}
	}
	if len(keys) == 0 {
		return s.path.Member(v.spelled()), emitted
	}
	return s.path.Item(keys), emitted
}

// grouped is a list's items by key, in the order of the list.
type grouped struct {
	by    map[string][]*value
	order []string
}

func groupItems(list *schema.List, v *value) (grouped, bool) {
	g := grouped{by: map[string][]*value{}}
	if v == nil || v.kind != kindList {
		return g, true
	}
	for _, item := range v.items {
		key, ok := identify(list.Keys(), item)
		if !ok {
			return g, false
		}
		g.by[key] = append(g.by[key], item)
		g.order = append(g.order, key)
	}
	return g, true
}

// staying returns the keys of g in order, without those that other lacks.
func (g grouped) staying(other grouped) []string {
	var out []string
	for _, key := range g.order {
		if len(other.by[key]) > 0 {
			out = append(out, key)
		}
	}
	return out
}

// unionOrder returns each key of a, then each of b that a lacks, in the order of the lists.
func unionOrder(a, b grouped) []string {
	var out []string
	seen := map[string]bool{}
	for _, key := range append(a.order[:len(a.order):len(a.order)], b.order...) {
		if !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	return out
}

// identify returns a text that is equal for items with equal keys. It fails where the keys do not
// identify: an item that is no plain object, a key that is no scalar, no key at all.
func identify(keys []schema.Key, item *value) (string, bool) {
	if len(keys) == 0 {
		return canonical(item), true
	}
	if item.kind != kindObject {
		return "", false
	}
	var b strings.Builder
	present := false
	for _, k := range keys {
		v := keyValue(k, item)
		switch {
		case item.count(k.Name) > 1:
			return "", false
		case v == nil:
			b.WriteString("-;")
		case v.isScalar():
			present = true
			b.WriteString(canonical(v) + ";")
		default:
			return "", false
		}
	}
	return b.String(), present
}

// count returns how often a name occurs in an object.
func (v *value) count(name string) int {
	n := 0
	for _, m := range v.members {
		if m.name == name {
			n++
		}
	}
	return n
}

// spelled returns a key's value as JSON, nil if there is none. What is in a container does not show in a path.
func (v *value) spelled() []byte {
	switch {
	case v == nil:
		return nil
	case v.kind == kindString:
		raw, err := json.Marshal(v.text)
		if err != nil {
			return nil
		}
		return raw
	case v.isScalar():
		return []byte(v.text)
	case v.kind == kindNull:
		return []byte("null")
	}
	return []byte("[]")
}

func keyValue(k schema.Key, item *value) *value {
	if v := item.get(k.Name); v != nil || k.Default == nil {
		return v
	}
	fallback, err := decodeAny(k.Default)
	if err != nil {
		return nil
	}
	return fallback
}

// canonical is equal for equal values and differs for others.
func canonical(v *value) string {
	switch v.kind {
	case kindList:
		var b strings.Builder
		for _, item := range v.items {
			b.WriteString(canonical(item) + ",")
		}
		return "[" + b.String() + "]"
	case kindObject:
		members := v.members
		if !v.duplicate {
			members = slices.SortedFunc(slices.Values(v.members), func(a, b member) int { return strings.Compare(a.name, b.name) })
		}
		var b strings.Builder
		for _, m := range members {
			b.WriteString(strconv.Quote(m.name) + ":" + canonical(m.value) + ",")
		}
		return "{" + b.String() + "}"
	default:
		return strconv.Itoa(int(v.kind)) + strconv.Quote(v.text)
	}
}

package fieldperm

import (
	"encoding/json"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// resolved is the result of following a path of managedFields.
type resolved struct {
	scope scope
	// old is the value before the request, new the value after it.
	old, new rawjson.Value
	// changed: the value at the path differs between the two objects, or is in one of them only.
	changed bool
	// container: the path is the own entry of an object or a keyed list that is in both.
	container bool
	// field: the path ends at a field that the schema names.
	field bool
	// byServer: only the API server writes the field of the path. It removes such paths from managers by itself, and changes the field
	// without them.
	byServer bool
	// keyField: the path is a key property of an item that is in both.
	keyField bool
	// missing: the path leads to nothing in either object.
	missing bool
	// changedAbove: the nearest existing value above a missing path differs between the objects. It is never true for the whole object,
	// in which something always differs.
	changedAbove bool
}

// waypoint is the state after one element of a path.
type waypoint struct {
	element  smdpath.PathElement
	scope    scope
	old, new rawjson.Value
	// The nearest values above are compared only if the path leads nowhere, because they may be large.
	oldAbove, newAbove rawjson.Value
	above              *schema.Node
	keyField, field    bool
	// end reports whether the schema does not know the place; scope is then the last known one.
	end bool
}

// trail is the way to the last path that was resolved. Most paths start like the path before them.
type trail struct {
	points []waypoint
	// result is the result of the whole trail, if known is true.
	result resolved
	known  bool
}

// resolve follows a path of managedFields through the schema and both objects. If the schema does not know the place (a field of another
// version), it ends at the last known one.
func (d *differ) resolve(p smdpath.Path) resolved {
	t := &d.trail
	n := 0
	for n < len(t.points) && n < len(p) && sameElement(&t.points[n].element, &p[n]) {
		n++
	}
	if n > 0 && t.known && n == len(t.points) && (n == len(p) || t.points[n-1].end) {
		return t.result
	}
	t.points = t.points[:n]
	at := waypoint{scope: d.root, old: d.old, new: d.new, above: d.root.node}
	if n > 0 {
		at = t.points[n-1]
	}
	for i := n; i < len(p) && !at.end; i++ {
		at = d.step(at, p, i)
		t.points = append(t.points, at)
	}
	t.result, t.known = d.arrive(at), true
	return t.result
}

// sameElement compares the pointers first: paths of one set share them.
func sameElement(a, b *smdpath.PathElement) bool { return *a == *b || a.Equals(*b) }

// step extends a waypoint by the element of p at index i.
func (d *differ) step(at waypoint, p smdpath.Path, i int) waypoint {
	element := &p[i]
	at.element, at.keyField, at.field = *element, false, named(at.scope.node, element.FieldName)
	if !at.old.IsAbsent() || !at.new.IsAbsent() {
		at.oldAbove, at.newAbove, at.above = at.old, at.new, at.scope.node
	}
	s, list := at.scope, at.scope.node.List()
	switch {
	case element.FieldName != nil && s.node.Map() != nil:
		at.keyField = isKey(p[:i+1]) && !at.old.IsAbsent() && !at.new.IsAbsent()
		name := *element.FieldName
		at.old, at.new = d.index.member(at.old, name), d.index.member(at.new, name)
		d.key(s, []byte(name), at.old, at.new, into(&at.scope))
	case element.Key != nil && list != nil:
		d.toItem(&at, keyItem(element.Key))
	case element.Value != nil && list != nil:
		d.toItem(&at, fromSMD(*element.Value))
	case element.Index != nil && list != nil && list.Atomic():
		at.old, at.new = d.index.item(at.old, *element.Index), d.index.item(at.new, *element.Index)
		_, emitted := d.itemStep(s, either(at.new, at.old))
		at.scope = d.enter(s, list.Item(), s.path.Index(*element.Index), emitted, at.old, at.new, either(at.new, at.old))
	default:
		at.end = true
	}
	return at
}

// toItem extends a waypoint to the item of a keyed list with the same keys as like. like also stands for an item that is in neither
// object.
func (d *differ) toItem(at *waypoint, like rawjson.Value) {
	above := at.scope
	list := above.node.List()
	at.old, at.new = d.find(list, at.old, like), d.find(list, at.new, like)
	path, emitted := d.itemStep(above, either(either(at.new, at.old), like))
	if at.old.IsAbsent() && at.new.IsAbsent() && like.IsScalar() {
		at.scope = d.enter(above, list.Item(), path, emitted, at.old, at.new, like)
		return
	}
	d.child(above, list.Item(), path, emitted, at.old, at.new, into(&at.scope))
}

// arrive returns the result for the last waypoint of a path.
func (d *differ) arrive(at waypoint) resolved {
	s, old, new := at.scope, at.old, at.new
	if at.end || old.IsAbsent() && new.IsAbsent() {
		return resolved{scope: s, keyField: at.keyField && !at.end, missing: true, changedAbove: at.oldAbove != d.old && d.changedValue(at.above, at.oldAbove, at.newAbove)}
	}
	if staysContainer(s.node, old, new) && (!old.IsEmpty() || !new.IsEmpty()) {
		// A container that stays is not changed itself: the changes in it have paths of their own.
		return resolved{scope: s, old: old, new: new, container: true, field: at.field}
	}
	if onlyServerWrites(s.node) {
		return resolved{scope: s, old: old, new: new, byServer: true}
	}
	return resolved{scope: s, old: old, new: new, changed: !d.equalAt(old, new), keyField: at.keyField}
}

// staysContainer reports whether two values are a struct, map or list whose parts have owners of their own.
func staysContainer(n *schema.Node, old, new rawjson.Value) bool {
	return old.IsObject() && new.IsObject() && n.Map() != nil && !n.Map().Atomic() || old.IsList() && new.IsList() && n.List() != nil && !n.List().Atomic()
}

// equalAt compares two values that paths lead to. It caches results for large values, because many owners may name the same value.
func (d *differ) equalAt(old, new rawjson.Value) bool {
	if len(old.Raw()) < largeValue || len(new.Raw()) < largeValue {
		return d.same.Equal(old, new)
	}
	both := [2]rawjson.Value{old, new}
	out, known := d.index.equal[both]
	if !known {
		if d.index.equal == nil {
			d.index.equal = map[[2]rawjson.Value]bool{}
		}
		out = d.same.Equal(old, new)
		d.index.equal[both] = out
	}
	return out
}

// largeValue is the number of bytes from which a comparison is cached.
const largeValue = 128

// into returns a visitor that only stores the scope.
func into(s *scope) visitor {
	return func(_ *differ, c scope, _, _ rawjson.Value) { *s = c }
}

// keyItem returns an item that has only its keys. It stands for an item that is in neither object.
func keyItem(keys *smdvalue.FieldList) rawjson.Value {
	item := make(map[string]any, len(*keys))
	for _, k := range *keys {
		item[k.Name] = k.Value.Unstructured()
	}
	return encoded(item)
}

// fromSMD converts the value of a key. A value that JSON cannot express becomes null, which equals no key.
func fromSMD(v smdvalue.Value) rawjson.Value { return encoded(v.Unstructured()) }

// encoded returns v as a value. Its document is not released, because paths refer to it.
func encoded(v any) rawjson.Value {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null")
	}
	doc, err := rawjson.Scan(raw)
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

// find returns the first item of a keyed list with the same keys as like; absent if there is none.
func (d *differ) find(list *schema.List, in, like rawjson.Value) rawjson.Value {
	if !in.IsList() {
		return rawjson.Value{}
	}
	want, ok := d.identify(list.Keys(), like)
	if !ok {
		return rawjson.Value{}
	}
	index := d.index.keyed[in]
	if index == nil {
		index = map[uint64][]rawjson.Value{}
		for i := in.Items(); i.Next(); {
			if id, ok := d.identify(list.Keys(), i.Value()); ok {
				index[id.sum()] = append(index[id.sum()], i.Value())
			}
		}
		if d.index.keyed == nil {
			d.index.keyed = map[rawjson.Value]map[uint64][]rawjson.Value{}
		}
		d.index.keyed[in] = index
	}
	for _, item := range index[want.sum()] {
		if id, _ := d.identify(list.Keys(), item); d.sameIdentity(&id, &want) {
			return item
		}
	}
	return rawjson.Value{}
}

// index caches the contents of lists and objects that paths of managedFields lead through, because owners name many items and members.
type index struct {
	keyed   map[rawjson.Value]map[uint64][]rawjson.Value
	members map[rawjson.Value]map[string]rawjson.Value
	items   map[rawjson.Value][]rawjson.Value
	// above caches whether something changed above a missing path, equal whether large values are equal.
	above, equal map[[2]rawjson.Value]bool
}

// member returns the member of an object, like Get, from the cache.
func (x *index) member(v rawjson.Value, name string) rawjson.Value {
	if !v.IsObject() {
		return rawjson.Value{}
	}
	byName, known := x.members[v]
	if !known {
		if x.members == nil {
			x.members = map[rawjson.Value]map[string]rawjson.Value{}
		}
		byName = map[string]rawjson.Value{}
		for m := v.Members(); m.Next(); {
			byName[m.Name().String()] = m.Value()
		}
		x.members[v] = byName
	}
	return byName[name]
}

// item returns the item at a position, absent if there is none.
func (x *index) item(v rawjson.Value, i int) rawjson.Value {
	if !v.IsList() || i < 0 {
		return rawjson.Value{}
	}
	items, known := x.items[v]
	if !known {
		if x.items == nil {
			x.items = map[rawjson.Value][]rawjson.Value{}
		}
		for i := v.Items(); i.Next(); {
			items = append(items, i.Value())
		}
		x.items[v] = items
	}
	if i >= len(items) {
		return rawjson.Value{}
	}
	return items[i]
}

// changedValue reports whether the values differ in a part that is not skipped because of its role. Around managedFields some part always
// differs. The result is cached, because many paths need it for one value.
func (d *differ) changedValue(n *schema.Node, old, new rawjson.Value) bool {
	both := [2]rawjson.Value{old, new}
	out, known := d.index.above[both]
	if !known {
		if d.index.above == nil {
			d.index.above = map[[2]rawjson.Value]bool{}
		}
		out = d.differs(n, old, new, nil)
		d.index.above[both] = out
	}
	return out
}

// differs reports whether the values differ in a part that is not skipped. If at is not nil, parts that have the same path in the other
// version are skipped as well.
func (d *differ) differs(n *schema.Node, old, new rawjson.Value, at *counterpart) bool {
	if d.same.Equal(old, new) || onlyServerWrites(n) || at != nil && d.kind.SameWithin(at.version, at.path) {
		return false
	}
	if n.Map() == nil || !old.IsObject() || !new.IsObject() || old.Ambiguous() || new.Ambiguous() {
		return true
	}
	begin := d.changes(old, new)
	defer func() { d.changed = d.changed[:begin] }()
	for i := begin; i < len(d.changed); i++ {
		c := d.changed[i]
		d.same.Recall(c.run)
		if child, _ := n.Map().Lookup(c.name); d.differs(child, c.old, c.new, at.below(c.name)) {
			return true
		}
	}
	return false
}

func onlyServerWrites(n *schema.Node) bool {
	return n.Role() == schema.RoleServerWritten || n.Role() == schema.RoleOwnership
}

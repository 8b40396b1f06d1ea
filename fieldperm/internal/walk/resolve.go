package walk

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// Resolved is the result of following a path of managedFields.
type Resolved struct {
	Scope Scope
	// Old is the value before the request, New the value after it.
	Old, New rawjson.Value
	// Changed: the value at the path differs between the two objects, or is in one of them only.
	Changed bool
	// Container: the path is the own entry of an object or a keyed list that is in both.
	Container bool
	// Field: the path ends at a field that the schema names.
	Field bool
	// ByServer: only the API server writes the field of the path. It removes such paths from managers by itself, and changes the field
	// without them.
	ByServer bool
	// KeyField: the path is a key property of an item that is in both.
	KeyField bool
	// Missing: the path leads to nothing in either object.
	Missing bool
}

// Waypoint is the state after one element of a path.
type Waypoint struct {
	element  smdpath.PathElement
	Scope    Scope
	Old, New rawjson.Value
	keyField bool
	// Field: the element is a field that the schema names.
	Field bool
	// End reports whether the schema does not know the place; Scope is then the last known one.
	End bool
}

// trail is the way to the last path that was resolved. Most paths start like the path before them.
type trail struct {
	points []Waypoint
	// result is the result of the whole trail, if known is true.
	result Resolved
	known  bool
}

// Resolve follows a path of managedFields through the schema and both objects. If the schema does not know the place (a field of another
// version), it ends at the last known one.
func (d *Differ) Resolve(p smdpath.Path) Resolved {
	t := &d.trail
	n := 0
	for n < len(t.points) && n < len(p) && sameElement(&t.points[n].element, &p[n]) {
		n++
	}
	if n > 0 && t.known && n == len(t.points) && (n == len(p) || t.points[n-1].End) {
		return t.result
	}
	t.points = slices.Grow(t.points[:n], len(p)-n)
	at := Waypoint{Scope: d.Root, Old: d.Old, New: d.New}
	if n > 0 {
		at = t.points[n-1]
	}
	for i := n; i < len(p) && !at.End; i++ {
		at = d.step(at, p, i)
		t.points = append(t.points, at)
	}
	t.result, t.known = d.arrive(at), true
	return t.result
}

// Points returns the way to the path that was resolved last, with one waypoint for each element as far as the schema knows them. It is
// valid until the next call of Resolve.
func (d *Differ) Points() []Waypoint { return d.trail.points }

// sameElement compares the pointers first: paths of one set share them.
func sameElement(a, b *smdpath.PathElement) bool { return *a == *b || a.Equals(*b) }

// step extends a waypoint by the element of p at index i.
func (d *Differ) step(at Waypoint, p smdpath.Path, i int) Waypoint {
	element := &p[i]
	at.element, at.keyField, at.Field = *element, false, Named(at.Scope.Node, element.FieldName)
	s, list := at.Scope, at.Scope.Node.List()
	switch {
	case element.FieldName != nil && s.Node.Map() != nil:
		at.keyField = IsKey(p[:i+1]) && !at.Old.IsAbsent() && !at.New.IsAbsent()
		name := *element.FieldName
		at.Old, at.New = d.index.member(at.Old, name), d.index.member(at.New, name)
		d.Key(s, []byte(name), at.Old, at.New, into(&at.Scope))
	case element.Key != nil && list != nil:
		d.toItem(&at, d.index.keyItem(element))
	case element.Value != nil && list != nil:
		d.toItem(&at, contents(element))
	case element.Index != nil && list != nil && list.Atomic():
		at.Old, at.New = d.index.item(at.Old, *element.Index), d.index.item(at.New, *element.Index)
		_, emitted := d.itemStep(s, either(at.New, at.Old))
		at.Scope = d.enter(s, list.Item(), s.Path.Index(*element.Index), emitted, at.Old, at.New, either(at.New, at.Old))
	default:
		at.End = true
	}
	return at
}

// toItem extends a waypoint to the item of a keyed list with the same keys as like. like also stands for an item that is in neither
// object.
func (d *Differ) toItem(at *Waypoint, like rawjson.Value) {
	above := at.Scope
	list := above.Node.List()
	at.Old, at.New = d.Find(list, at.Old, like), d.Find(list, at.New, like)
	path, emitted := d.itemStep(above, either(either(at.New, at.Old), like))
	if at.Old.IsAbsent() && at.New.IsAbsent() && like.IsScalar() {
		at.Scope = d.enter(above, list.Item(), path, emitted, at.Old, at.New, like)
		return
	}
	d.child(above, list.Item(), path, emitted, at.Old, at.New, into(&at.Scope))
}

// arrive returns the result for the last waypoint of a path.
func (d *Differ) arrive(at Waypoint) Resolved {
	s, old, new := at.Scope, at.Old, at.New
	if at.End || old.IsAbsent() && new.IsAbsent() {
		return Resolved{Scope: s, KeyField: at.keyField && !at.End, Missing: true}
	}
	if StaysContainer(s.Node, old, new) && (!old.IsEmpty() || !new.IsEmpty()) {
		// A container that stays is not changed itself: the changes in it have paths of their own.
		return Resolved{Scope: s, Old: old, New: new, Container: true, Field: at.Field}
	}
	if onlyServerWrites(s.Node) {
		return Resolved{Scope: s, Old: old, New: new, ByServer: true}
	}
	return Resolved{Scope: s, Old: old, New: new, Changed: !d.EqualAt(old, new), KeyField: at.keyField}
}

// Own reports whether the path is an own entry or a key of something that stays.
func (r *Resolved) Own() bool { return r.Container || r.KeyField }

// Owner returns the path of the container or item that the own entry or the key belongs to.
func (r *Resolved) Owner(p smdpath.Path) smdpath.Path {
	if r.KeyField {
		return p[:len(p)-1]
	}
	return p
}

// Follow returns where a path leads in one object, without an old object.
func (d *Differ) Follow(kind *schema.Kind, object rawjson.Value, p smdpath.Path) Waypoint {
	at := Waypoint{Scope: d.enterRoot(kind, rawjson.Value{}, object), New: object}
	for i := 0; i < len(p) && !at.End; i++ {
		at = d.step(at, p, i)
	}
	return at
}

// HasOwnedParts reports whether the parts of a struct, map or list at a node have owners of their own.
func HasOwnedParts(n *schema.Node) bool {
	return n.Map() != nil && !n.Map().Atomic() || n.List() != nil && !n.List().Atomic()
}

// StaysContainer reports whether two values are a struct, map or list whose parts have owners of their own.
func StaysContainer(n *schema.Node, old, new rawjson.Value) bool {
	return old.IsObject() && new.IsObject() && n.Map() != nil && !n.Map().Atomic() || old.IsList() && new.IsList() && n.List() != nil && !n.List().Atomic()
}

// EqualAt compares two values that paths lead to. It caches results for large values, because many owners may name the same value.
func (d *Differ) EqualAt(old, new rawjson.Value) bool {
	if len(old.Raw()) < largeValue || len(new.Raw()) < largeValue {
		return d.Same.Equal(old, new)
	}
	both := [2]rawjson.Value{old, new}
	out, known := d.index.equal[both]
	if !known {
		if d.index.equal == nil {
			d.index.equal = map[[2]rawjson.Value]bool{}
		}
		out = d.Same.Equal(old, new)
		d.index.equal[both] = out
	}
	return out
}

// largeValue is the number of bytes from which a comparison is cached.
const largeValue = 128

// into returns a visitor that only stores the scope.
func into(s *Scope) Visitor {
	return func(_ *Differ, c Scope, _, _ rawjson.Value) { *s = c }
}

// keyItem returns an item that has only the keys of an element. It stands for an item that is in neither object.
func (x *index) keyItem(e *smdpath.PathElement) rawjson.Value {
	item, known := x.keys[e.Key]
	if !known {
		if x.keys == nil {
			x.keys = map[*smdvalue.FieldList]rawjson.Value{}
		}
		item = contents(e)
		x.keys[e.Key] = item
	}
	return item
}

// contents returns the keys or the value of an element, as its text has them. Keys that JSON cannot express become null, which equals no key. The
// document is not released, because paths refer to it.
func contents(e *smdpath.PathElement) rawjson.Value {
	text, err := smdpath.SerializePathElement(*e)
	if err != nil {
		text = "v:null"
	}
	doc, err := rawjson.Scan([]byte(text[len("v:"):]))
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

// Find returns the first item of a keyed list with the same keys as like; absent if there is none.
func (d *Differ) Find(list *schema.List, in, like rawjson.Value) rawjson.Value {
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
	keys    map[*smdvalue.FieldList]rawjson.Value
	// equal caches whether large values are equal.
	equal map[[2]rawjson.Value]bool
}

// fewMembers is the number of members up to which a search is as fast as the cache.
const fewMembers = 8

// member returns the member of an object, like Get, from the cache if the object has many.
func (x *index) member(v rawjson.Value, name string) rawjson.Value {
	var found rawjson.Value
	n := 0
	for m := v.Members(); m.Next(); {
		if n++; n > fewMembers {
			return x.cached(v, name)
		}
		if m.Name().Is(name) {
			found = m.Value()
		}
	}
	return found
}

func (x *index) cached(v rawjson.Value, name string) rawjson.Value {
	byName, known := x.members[v]
	if !known {
		if x.members == nil {
			x.members = map[rawjson.Value]map[string]rawjson.Value{}
		}
		byName = make(map[string]rawjson.Value, count(v))
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

func onlyServerWrites(n *schema.Node) bool {
	return n.Role() == schema.RoleServerWritten || n.Role() == schema.RoleOwnership
}

package diff

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// Resolved is the result of following a path of managedFields.
type Resolved struct {
	Place *Place
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
	Place    *Place
	Old, New rawjson.Value
	keyField bool
	// Field: the element is a field that the schema names.
	Field bool
	// End reports whether the way ends before the path: the schema does not know the place, or the keys of an item are those of another item too.
	// Place is then the last one on the way.
	End bool
	// alike: several items have the keys. changed: they differ between the two objects.
	alike, changed bool
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
	at := Waypoint{Place: d.Root, Old: d.Old, New: d.New}
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

// step extends a waypoint by the element of a path at index i.
func (d *Differ) step(at Waypoint, to smdpath.Path, i int) Waypoint {
	element := &to[i]
	at.element, at.keyField, at.Field = *element, false, Named(at.Place.Node, element.FieldName)
	p, list := at.Place, at.Place.Node.List()
	switch {
	case element.FieldName != nil && p.Node.Map() != nil:
		at.keyField = IsKey(to[:i+1]) && !at.Old.IsAbsent() && !at.New.IsAbsent()
		name := *element.FieldName
		at.Old, at.New = d.index.member(at.Old, name), d.index.member(at.New, name)
		d.key(p, []byte(name), at.Old, at.New, into(&at.Place))
	case element.Key != nil && list != nil:
		d.toItem(&at, d.index.keyItem(element))
	case element.Value != nil && list != nil:
		d.toItem(&at, contents(element))
	case element.Index != nil && list != nil && list.Atomic():
		at.Old, at.New = d.index.item(at.Old, *element.Index), d.index.item(at.New, *element.Index)
		_, bound := d.itemStep(p, either(at.New, at.Old))
		at.Place = d.enter(p, list.Item(), p.Path.Index(*element.Index), bound, at.Old, at.New, either(at.New, at.Old)).kept()
	default:
		at.End = true
	}
	return at
}

// toItem extends a waypoint to the item of a keyed list with the same keys as like. like also stands for an item that is in neither
// object. If several items have the keys, the way ends at the list (D5).
func (d *Differ) toItem(at *Waypoint, like rawjson.Value) {
	above := at.Place
	list := above.Node.List()
	olds, news := d.find(list, at.Old, like), d.find(list, at.New, like)
	if len(olds) > 1 || len(news) > 1 {
		at.End, at.alike, at.changed = true, true, !d.equalItems(olds, news)
		return
	}
	at.Old, at.New = only(olds), only(news)
	path, bound := d.itemStep(above, either(either(at.New, at.Old), like))
	if at.Old.IsAbsent() && at.New.IsAbsent() && like.IsScalar() {
		at.Place = d.enter(above, list.Item(), path, bound, at.Old, at.New, like).kept()
		return
	}
	d.child(above, list.Item(), path, bound, at.Old, at.New, into(&at.Place))
}

// only returns the value of a list of at most one, absent if there is none.
func only(values []rawjson.Value) rawjson.Value {
	if len(values) == 0 {
		return rawjson.Value{}
	}
	return values[0]
}

// arrive returns the result for the last waypoint of a path.
func (d *Differ) arrive(at Waypoint) Resolved {
	p, old, new := at.Place, at.Old, at.New
	if at.alike {
		return Resolved{Place: p, Old: old, New: new, Changed: at.changed}
	}
	if at.End || old.IsAbsent() && new.IsAbsent() {
		return Resolved{Place: p, KeyField: at.keyField && !at.End, Missing: true}
	}
	if StaysContainer(p.Node, old, new) && (!old.IsEmpty() || !new.IsEmpty()) {
		// A container that stays is not changed itself: the changes in it have paths of their own.
		return Resolved{Place: p, Old: old, New: new, Container: true, Field: at.Field}
	}
	if onlyServerWrites(p.Node) {
		return Resolved{Place: p, Old: old, New: new, ByServer: true}
	}
	return Resolved{Place: p, Old: old, New: new, Changed: !d.EqualAt(old, new), KeyField: at.keyField}
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
	root := &Place{}
	d.start(root, kind, rawjson.Value{}, object)
	at := Waypoint{Place: root, New: object}
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

// into returns a visitor that only stores the place.
func into(to **Place) visitor {
	return func(_ *Differ, p *Place, _, _ rawjson.Value) { *to = p.kept() }
}

func onlyServerWrites(n *schema.Node) bool {
	return n.Role() == schema.RoleServerWritten || n.Role() == schema.RoleOwnership
}

package fieldperm

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeUnheld charges the structs and lists around what a manager gains by applying, if no manager held anything in them and they
// have something that the manager does not own. For when that manager applies without what it gained, the API server removes the
// named field that it was the last to own something in, with all that is inside (structured-merge-diff: a set has the named fields
// above its paths as members).
func (o *owners) chargeUnheld(gained, after *fieldpath.Set) {
	gained.Iterate(func(p fieldpath.Path) {
		if o.d.stops() {
			return
		}
		o.d.resolve(p)
		points := o.d.trail.points
		holds, owns, above := o.holds(), after, o.d.root.node
		for i := range min(len(points), len(p)-1) {
			at := &points[i]
			if at.end || at.old.IsAbsent() || at.new.IsAbsent() {
				return // What appeared or disappeared with it is charged.
			}
			held := holds.Members.Has(p[i])
			holds, owns = holds.WithPrefix(p[i]), owns.WithPrefix(p[i])
			if named(above, &p[i]) && !held && holds.Empty() && !(i == 0 && isMetadata(&p[i])) {
				if !o.charged[at.scope.identity()] && !o.d.ownsAll(at.scope.node, owns, at.old, at.new) {
					o.charge(at.scope)
				}
				return
			}
			above = at.scope.node
		}
	})
}

func named(above *schema.Node, element *fieldpath.PathElement) bool {
	if element.FieldName == nil {
		return false
	}
	_, field := above.Map().Lookup([]byte(*element.FieldName))
	return field
}

// isMetadata: whatever is applied has a name.
func isMetadata(element *fieldpath.PathElement) bool {
	return element.FieldName != nil && *element.FieldName == "metadata"
}

// ownsAll reports whether a set has all that stays the same in a value. Of lists it says so only if they are atomic.
func (d *differ) ownsAll(n *schema.Node, owns *fieldpath.Set, old, new rawjson.Value) bool {
	if !old.IsObject() || !new.IsObject() || n.Map() == nil || n.Map().Atomic() || old.Ambiguous() || new.Ambiguous() {
		return false
	}
	for m := old.Members(); m.Next(); {
		name := m.Name().String()
		is := d.index.member(new, name)
		if d.stops() {
			return false
		}
		if is.IsAbsent() {
			continue
		}
		element := fieldpath.PathElement{FieldName: &name}
		child, _ := n.Map().Lookup(m.Name().Bytes())
		if m.Value().IsObject() && is.IsObject() && child.Map() != nil && !child.Map().Atomic() && !m.Value().IsEmpty() {
			if !d.ownsAll(child, owns.WithPrefix(element), m.Value(), is) {
				return false
			}
			continue
		}
		if !owns.Members.Has(element) && d.same.Equal(m.Value(), is) {
			return false
		}
		if m.Value().IsList() && is.IsList() && child.List() != nil && !child.List().Atomic() && !m.Value().IsEmpty() {
			return false
		}
	}
	return true
}

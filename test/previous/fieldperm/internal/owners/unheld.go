package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm/internal/walk"
	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
	"github.com/fieldperm/fieldperm/test/previous/schema"
)

// chargeUnheld charges the unowned parts of the structs, maps and lists around what a manager gains by applying, unless another manager
// holds these containers. When that manager applies without what it gained, the API server removes the named field in which it was the
// last owner of anything, with its whole contents (structured-merge-diff: the members of a set include the named fields above its paths).
//
// An Update manager holds a container only by the container's own entry, whose change needs the container's verb. Its values inside do
// not hold the container: it may lose them one at a time, each with the verb of that value, until only the applier is left. The manager
// that applies holds the container by anything that it owned there, because its own next apply has that. Another applier also holds it,
// until a user removes what it owns there; this is not enough for contents behind barriers.
func (o *owners) chargeUnheld(who manager, gained *smdpath.Set) {
	containers, brings, others := o.containers(), o.brings(who), o.bring()
	for p := range paths(gained) {
		if o.d.Stops() {
			return
		}
		r := o.d.Resolve(p)
		points := o.d.Points()
		entries, mine, theirs := containers, brings, others
	way:
		for i := range points {
			at := &points[i]
			if at.End || at.Old.IsAbsent() || at.New.IsAbsent() || i == len(p)-1 && !r.Container {
				break // The values that appeared or disappeared with it are charged.
			}
			held, isMine, isTheirs := entries.Members.Has(p[i]), mine.Members.Has(p[i]), theirs.Members.Has(p[i])
			entries, mine, theirs = under(entries, p[i]), under(mine, p[i]), under(theirs, p[i])
			switch {
			case !at.Field || held || isMine || !mine.Empty() || i == 0 && isMetadata(&p[i]):
			case isTheirs || !theirs.Empty():
				o.chargeBrought(p[:i+1], at.Scope)
			default:
				o.chargeUnowned(p[:i+1], at.Scope, false)
				if at.Old.IsEmpty() {
					o.charge(at.Scope) // The container itself goes, and nothing in it says so.
				}
				break way
			}
		}
	}
}

// isMetadata reports whether an element is the metadata. Every applied object has a name there.
func isMetadata(element *smdpath.PathElement) bool {
	return element.FieldName != nil && *element.FieldName == "metadata"
}

// chargeUnowned charges the parts of a container that stay and have no owner after the request. The path is the last that was resolved,
// or leads to it. covered says that the container is charged as a whole; then only the parts that its verbs do not cover are charged.
func (o *owners) chargeUnowned(p smdpath.Path, s walk.Scope, covered bool) {
	w := unowned{owners: o}
	if covered {
		w.above = &s
	}
	w.from(p, s, o.unowned)
}

// chargeBrought charges only the barriers in such parts, except for values that the API server fills in by itself.
func (o *owners) chargeBrought(p smdpath.Path, s walk.Scope) {
	w := unowned{owners: o, above: &s, isBrought: true}
	w.from(p, s, o.brought)
}

// unowned is a walk through the parts of a container that stay.
type unowned struct {
	*owners
	// above is the scope that is charged as a whole, nil if none is.
	above *walk.Scope
	// isBrought leaves out the values that the API server fills in by itself.
	isBrought bool
}

// from starts the walk at the container that a path leads to. It does nothing if the unowned parts of that container, or of one above it,
// are already charged, or if this kind of walk has already seen it.
func (w *unowned) from(p smdpath.Path, s walk.Scope, seen map[rawjson.Value]bool) {
	points, owns := w.d.Points(), w.owned()
	for i := range p {
		if w.unowned[points[i].Old] || seen[points[i].Old] {
			return
		}
		owns = under(owns, p[i])
	}
	at := &points[len(p)-1]
	seen[at.Old] = true
	w.inside(s, owns, at.Old, at.New)
}

// inside walks through a struct, map or list that stays. It looks at each part as if the part vanished.
func (w *unowned) inside(s walk.Scope, owns *smdpath.Set, old, new rawjson.Value) {
	d := w.d
	if w.above != nil && s.IsCoveredBy(w.above) && !d.MayBarWithin(s) {
		return
	}
	switch {
	case old.IsObject() && new.IsObject() && s.Node.Map() != nil && !s.Node.Map().Atomic() && !old.Ambiguous() && !new.Ambiguous():
		for m := old.Members(); m.Next() && !d.Stops(); {
			name := m.Name().String()
			if is := d.Member(new, name); !is.IsAbsent() {
				d.Key(s, m.Name().Bytes(), m.Value(), rawjson.Value{}, w.part(owns, smdpath.PathElement{FieldName: &name}, is, nil, walk.Named(s.Node, &name)))
			}
		}
	case old.IsList() && new.IsList() && s.Node.List() != nil && !s.Node.List().Atomic() && d.Keyed(s, old) && d.Keyed(s, new):
		for i := old.Items(); i.Next() && !d.Stops(); {
			if is := d.Find(s.Node.List(), new, i.Value()); !is.IsAbsent() {
				d.Item(s, i.Value(), rawjson.Value{}, w.part(owns, d.Element(s, i.Value()), is, s.Node.List(), false))
			}
		}
	default:
		w.charge(s, old)
	}
}

// part returns the visitor for one part of a container. The argument is has the value of the part after the request. A part that is not a
// named field has its own entry in the set of owned paths, besides the entries of its contents.
func (w *unowned) part(owns *smdpath.Set, element smdpath.PathElement, is rawjson.Value, list *schema.List, field bool) walk.Visitor {
	return func(d *walk.Differ, s walk.Scope, was, _ rawjson.Value) {
		switch owned := w.hasMember(owns, &element, list); {
		case !walk.StaysContainer(s.Node, was, is) || was.IsEmpty():
			if !owned && d.EqualAt(was, is) {
				w.charge(s, was)
			}
		case !field && !owned:
			w.charge(s, was)
		default:
			w.inside(s, under(owns, element), was, is)
		}
	}
}

// charge charges a part without owner, and the barriers in it.
func (w *unowned) charge(s walk.Scope, was rawjson.Value) {
	if w.isBrought && w.d.FillsIn(s, was) {
		return
	}
	if w.above == nil || !s.IsCoveredBy(w.above) {
		w.owners.charge(s)
	}
	w.chargeWithin(s, was)
}

// chargeWithin charges the barriers inside a value that is charged as a whole, and the parts that stand apart there, as if the value
// vanished.
func (o *owners) chargeWithin(s walk.Scope, was rawjson.Value) {
	d := o.d
	if was.IsScalar() || !d.MayBarWithin(s) {
		return
	}
	at := within{was, o.identity(&s)}
	if o.whole[at] {
		return // Thousands of managers may come to own one large value, so it is walked once.
	}
	if o.whole == nil {
		o.whole = map[within]bool{}
	}
	o.whole[at] = true
	found := d.Within(s, was)
	for i := range found {
		o.charge(walk.ScopeOf(&found[i]))
	}
}

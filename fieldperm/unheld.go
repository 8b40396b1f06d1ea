package fieldperm

import (
	"slices"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
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
	gained.Iterate(func(p smdpath.Path) {
		if o.d.stops() {
			return
		}
		r := o.d.resolve(p)
		points := o.d.trail.points
		entries, mine, theirs := containers, brings, others
		for i := range points {
			at := &points[i]
			if at.end || at.old.IsAbsent() || at.new.IsAbsent() || i == len(p)-1 && !r.container {
				return // The values that appeared or disappeared with it are charged.
			}
			held, isMine, isTheirs := entries.Members.Has(p[i]), mine.Members.Has(p[i]), theirs.Members.Has(p[i])
			entries, mine, theirs = entries.WithPrefix(p[i]), mine.WithPrefix(p[i]), theirs.WithPrefix(p[i])
			switch {
			case !at.field || held || isMine || !mine.Empty() || i == 0 && isMetadata(&p[i]):
			case isTheirs || !theirs.Empty():
				o.chargeBrought(p[:i+1], at.scope)
			default:
				o.chargeUnowned(p[:i+1], at.scope, false)
				if at.old.IsEmpty() {
					o.charge(at.scope) // The container itself goes, and nothing in it says so.
				}
				return
			}
		}
	})
}

// named reports whether the schema names a member as a field. The members of a map are not fields.
func named(above *schema.Node, member *string) bool {
	if member == nil || above.Map() == nil {
		return false
	}
	_, field := above.Map().Lookup([]byte(*member))
	return field
}

// isMetadata reports whether an element is the metadata. Every applied object has a name there.
func isMetadata(element *smdpath.PathElement) bool {
	return element.FieldName != nil && *element.FieldName == "metadata"
}

// chargeUnowned charges the parts of a container that stay and have no owner after the request. The path is the last that was resolved,
// or leads to it. covered says that the container is charged as a whole; then only the parts that its verbs do not cover are charged.
func (o *owners) chargeUnowned(p smdpath.Path, s scope, covered bool) {
	w := unowned{owners: o}
	if covered {
		w.above = &s
	}
	w.from(p, s, o.unowned)
}

// chargeBrought charges only the barriers in such parts, except for values that the API server fills in by itself.
func (o *owners) chargeBrought(p smdpath.Path, s scope) {
	w := unowned{owners: o, above: &s, isBrought: true}
	w.from(p, s, o.brought)
}

// unowned is a walk through the parts of a container that stay.
type unowned struct {
	*owners
	// above is the scope that is charged as a whole, nil if none is.
	above *scope
	// isBrought leaves out the values that the API server fills in by itself.
	isBrought bool
}

// from starts the walk at the container that a path leads to. It does nothing if the unowned parts of that container, or of one above it,
// are already charged, or if this kind of walk has already seen it.
func (w *unowned) from(p smdpath.Path, s scope, seen map[rawjson.Value]bool) {
	points, owns := w.d.trail.points, w.owned()
	for i := range p {
		if w.unowned[points[i].old] || seen[points[i].old] {
			return
		}
		owns = owns.WithPrefix(p[i])
	}
	at := &points[len(p)-1]
	seen[at.old] = true
	w.inside(s, owns, at.old, at.new)
}

// inside walks through a struct, map or list that stays. It looks at each part as if the part vanished.
func (w *unowned) inside(s scope, owns *smdpath.Set, old, new rawjson.Value) {
	d := w.d
	if w.above != nil && s.isCoveredBy(w.above) && !d.mayBarWithin(s) {
		return
	}
	switch {
	case old.IsObject() && new.IsObject() && s.node.Map() != nil && !s.node.Map().Atomic() && !old.Ambiguous() && !new.Ambiguous():
		for m := old.Members(); m.Next() && !d.stops(); {
			name := m.Name().String()
			if is := d.index.member(new, name); !is.IsAbsent() {
				d.key(s, m.Name().Bytes(), m.Value(), rawjson.Value{}, w.part(owns, smdpath.PathElement{FieldName: &name}, is, nil, named(s.node, &name)))
			}
		}
	case old.IsList() && new.IsList() && s.node.List() != nil && !s.node.List().Atomic() && d.keyed(s, old) && d.keyed(s, new):
		for i := old.Items(); i.Next() && !d.stops(); {
			if is := d.find(s.node.List(), new, i.Value()); !is.IsAbsent() {
				d.item(s, i.Value(), rawjson.Value{}, w.part(owns, d.element(s, i.Value()), is, s.node.List(), false))
			}
		}
	default:
		w.charge(s, old)
	}
}

// part returns the visitor for one part of a container. The argument is has the value of the part after the request. A part that is not a
// named field has its own entry in the set of owned paths, besides the entries of its contents.
func (w *unowned) part(owns *smdpath.Set, element smdpath.PathElement, is rawjson.Value, list *schema.List, field bool) visitor {
	return func(d *differ, s scope, was, _ rawjson.Value) {
		switch owned := d.hasMember(owns, &element, list); {
		case !staysContainer(s.node, was, is) || was.IsEmpty():
			if !owned && d.equalAt(was, is) {
				w.charge(s, was)
			}
		case !field && !owned:
			w.charge(s, was)
		default:
			w.inside(s, owns.WithPrefix(element), was, is)
		}
	}
}

// charge charges a part without owner, and the barriers in it.
func (w *unowned) charge(s scope, was rawjson.Value) {
	if w.isBrought && w.d.fillsIn(s, was) {
		return
	}
	if w.above == nil || !s.isCoveredBy(w.above) {
		w.owners.charge(s)
	}
	w.chargeWithin(s, was)
}

// isCoveredBy reports whether every verb that covers the place above also covers this place.
func (s *scope) isCoveredBy(above *scope) bool {
	if len(s.others) != len(above.others) || !s.line.isCoveredBy(&above.line) {
		return false
	}
	for i := range s.others {
		// A line that is strict here and not above can be passed above by a verb of another tree.
		if !s.others[i].isCoveredBy(&above.others[i]) || s.others[i].apart != above.others[i].apart || s.apart != above.apart {
			return false
		}
	}
	return true
}

func (l *line) isCoveredBy(above *line) bool {
	n := len(above.chain)
	return l.barrier <= above.barrier && len(l.chain) >= n && slices.Equal(l.chain[:n], above.chain)
}

// chargeWithin charges the barriers inside a value that is charged as a whole, and the parts that stand apart there, as if the value
// vanished.
func (o *owners) chargeWithin(s scope, was rawjson.Value) {
	d := o.d
	if was.IsScalar() || !d.mayBarWithin(s) {
		return
	}
	at := within{was, s.identity()}
	if o.whole[at] {
		return // Thousands of managers may come to own one large value, so it is walked once.
	}
	if o.whole == nil {
		o.whole = map[within]bool{}
	}
	o.whole[at] = true
	begin := len(d.out)
	d.barriersWithin(s, was, rawjson.Value{})
	found := d.out[begin:]
	d.out = d.out[:begin]
	for i := range found {
		o.charge(scope{path: found[i].Path, line: line{chain: found[i].Chain, barrier: found[i].Barrier}})
	}
}

// keyed reports whether keys tell the items of a list apart.
func (d *differ) keyed(s scope, list rawjson.Value) bool {
	g := &grouping{d: d, keys: s.node.List().Keys(), bySum: map[uint64]int32{}}
	return g.add(list, true) && len(g.groups) == len(g.items)
}

// element returns the path element that managedFields use for an item.
func (d *differ) element(s scope, item rawjson.Value) smdpath.PathElement {
	keys := s.node.List().Keys()
	if len(keys) == 0 {
		v := smdvalue.NewValueInterface(native(item, nil))
		return smdpath.PathElement{Value: &v}
	}
	fields := make(smdvalue.FieldList, 0, len(keys))
	for i := range keys {
		if v, _ := d.keyValue(&keys[i], item); !v.IsAbsent() {
			fields = append(fields, smdvalue.Field{Name: keys[i].Name, Value: smdvalue.NewValueInterface(native(v, nil))})
		}
	}
	fields.Sort()
	return smdpath.PathElement{Key: &fields}
}

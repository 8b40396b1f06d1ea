package fieldperm

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// chargeUnheld charges what nobody owns in the structs, maps and lists around what a manager gains by applying, unless another manager
// holds them. For when that manager applies without what it gained, the API server removes the named field that it was the last to
// own something in, with all that is inside (structured-merge-diff: a set has the named fields above its paths as members).
//
// A manager that updates may lose what it has in a container one value at a time, each by the verb of that value, and leave the
// container to the one who applies. So it holds a container only by the container's own entry, which goes by the
// container's verb. The manager that applies holds it by anything that it owned there: its own next apply has that. Another that
// applies does so as well, until somebody removes what it has there: that does not do for what is guarded.
func (o *owners) chargeUnheld(who manager, gained *fieldpath.Set) {
	containers, brings, others := o.containers(), o.brings(who), o.bring()
	gained.Iterate(func(p fieldpath.Path) {
		if o.d.stops() {
			return
		}
		r := o.d.resolve(p)
		points := o.d.trail.points
		entries, mine, theirs := containers, brings, others
		for i := range points {
			at := &points[i]
			if at.end || at.old.IsAbsent() || at.new.IsAbsent() || i == len(p)-1 && !r.container {
				return // What appeared or disappeared with it is charged.
			}
			held, isMine, isTheirs := entries.Members.Has(p[i]), mine.Members.Has(p[i]), theirs.Members.Has(p[i])
			entries, mine, theirs = entries.WithPrefix(p[i]), mine.WithPrefix(p[i]), theirs.WithPrefix(p[i])
			switch {
			case !at.field || held || isMine || !mine.Empty() || i == 0 && isMetadata(&p[i]):
			case isTheirs || !theirs.Empty():
				o.chargeBrought(p[:i+1], at.scope)
			default:
				o.chargeUnowned(p[:i+1], at.scope, false)
				return
			}
		}
	})
}

// named reports whether the schema names a member as a field: the members of a map are none.
func named(above *schema.Node, member *string) bool {
	if member == nil || above.Map() == nil {
		return false
	}
	_, field := above.Map().Lookup([]byte(*member))
	return field
}

// isMetadata: whatever is applied has a name.
func isMetadata(element *fieldpath.PathElement) bool {
	return element.FieldName != nil && *element.FieldName == "metadata"
}

// chargeUnowned charges what stays in a container and is owned by nobody after the request. The path is the last that was resolved,
// or leads to it. covered says that the container is charged as a whole: then only what its verbs do not cover is charged.
func (o *owners) chargeUnowned(p fieldpath.Path, s scope, covered bool) {
	w := unowned{owners: o}
	if covered {
		w.above = &s
	}
	w.from(p, s, o.unowned)
}

// chargeBrought charges what is guarded of that, but for what the API server fills in by itself.
func (o *owners) chargeBrought(p fieldpath.Path, s scope) {
	w := unowned{owners: o, above: &s, isBrought: true}
	w.from(p, s, o.brought)
}

// unowned is a walk through what stays in a container.
type unowned struct {
	*owners
	// above is what is charged as a whole, nil for nothing.
	above *scope
	// isBrought says that what the API server fills in by itself is left out.
	isBrought bool
}

// from begins at the container that a path leads to, unless that, or one above it, is among those whose unowned parts are charged, or
// among those that this kind of walk has seen.
func (w *unowned) from(p fieldpath.Path, s scope, seen map[rawjson.Value]bool) {
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

// inside goes through a struct, map or list that stays. Its parts are looked at as if they vanished.
func (w *unowned) inside(s scope, owns *fieldpath.Set, old, new rawjson.Value) {
	d := w.d
	if w.above != nil && s.isCoveredBy(w.above) && !d.mayBarWithin(s) {
		return
	}
	switch {
	case old.IsObject() && new.IsObject() && s.node.Map() != nil && !s.node.Map().Atomic() && !old.Ambiguous() && !new.Ambiguous():
		for m := old.Members(); m.Next() && !d.stops(); {
			name := m.Name().String()
			if is := d.index.member(new, name); !is.IsAbsent() {
				d.key(s, m.Name().Bytes(), m.Value(), rawjson.Value{}, w.part(owns, fieldpath.PathElement{FieldName: &name}, is, nil, named(s.node, &name)))
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

// part looks at one part of a container, which is now what is. What is no named field has an owner of its own besides those of what is in it.
func (w *unowned) part(owns *fieldpath.Set, element fieldpath.PathElement, is rawjson.Value, list *schema.List, field bool) visitor {
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

// charge charges what nobody owns, and what is guarded in it.
func (w *unowned) charge(s scope, was rawjson.Value) {
	if w.isBrought && w.d.fillsIn(s, was) {
		return
	}
	if w.above == nil || !s.isCoveredBy(w.above) {
		w.owners.charge(s)
	}
	w.chargeWithin(s, was)
}

// isCoveredBy reports whether each verb that covers something above covers this place as well.
func (s *scope) isCoveredBy(above *scope) bool {
	if len(s.others) != len(above.others) || !s.line.isCoveredBy(&above.line) {
		return false
	}
	for i := range s.others {
		// What is strict here and not above may be passed above by a verb of another tree.
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

// chargeWithin charges the barriers inside something that is charged as a whole, and what stands apart there, as if it vanished.
func (o *owners) chargeWithin(s scope, was rawjson.Value) {
	d := o.d
	if was.IsScalar() || !d.mayBarWithin(s) {
		return
	}
	at := within{was, s.identity()}
	if o.whole[at] {
		return // Thousands of managers may come to own one large value.
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

// element is how managedFields name an item.
func (d *differ) element(s scope, item rawjson.Value) fieldpath.PathElement {
	keys := s.node.List().Keys()
	if len(keys) == 0 {
		v := smdvalue.NewValueInterface(native(item, nil))
		return fieldpath.PathElement{Value: &v}
	}
	fields := make(smdvalue.FieldList, 0, len(keys))
	for i := range keys {
		if v, _ := d.keyValue(&keys[i], item); !v.IsAbsent() {
			fields = append(fields, smdvalue.Field{Name: keys[i].Name, Value: smdvalue.NewValueInterface(native(v, nil))})
		}
	}
	fields.Sort()
	return fieldpath.PathElement{Key: &fields}
}

package exact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// hollow charges fields without an owner in a container that a manager applied empty, if other managers own no value there: an apply that
// goes through another version may delete these fields. It charges them when such a version is added, or when the last value is removed.
func (t transfer) hollow(once func(place)) {
	if t.kind.ConvertsByName() || t.stored != nil || len(t.moved) == 0 {
		return
	}
	was, is := t.values(t.was, func(p place) *value { return p.old }), t.values(t.is, func(p place) *value { return p.new })
	for _, e := range t.is {
		another, comes := false, false
		for _, other := range t.is {
			if other.version != e.version {
				another = true
				comes = comes || !slices.ContainsFunc(t.was, func(old ownerEntry) bool { return old.version == other.version })
			}
		}
		if !another || !t.applies(e.manager) {
			continue
		}
		goes := slices.ContainsFunc(was, func(p fieldpath.Path) bool { return !has(is, p) })
		set := e.set
		if set == nil {
			set = fieldpath.NewSet()
		}
		here := t.named(e)
		if as := t.others[e.version]; as != nil && (comes || goes) && slices.ContainsFunc(pathsOf(set.Difference(here)), func(p fieldpath.Path) bool {
			return !t.any(set, p) && hasOwnedParts(t.in(as, p).place)
		}) {
			t.everything(once)
			continue
		}
		for _, p := range pathsOf(here) {
			if at := t.follow(p); comes && at.missing && hasOwnedParts(at.place) && !t.any(set, p) {
				t.everything(once) // It is not looked whether the object has the container.
			}
			t.hollowAt(p, was, is, comes, once)
		}
	}
}

func hasOwnedParts(p place) bool {
	fields, items := p.atom.Map, p.atom.List
	return fields != nil && fields.ElementRelationship != "atomic" || items != nil && items.ElementRelationship == "associative"
}

// hollowAt charges the outermost hollow container of a path.
func (t transfer) hollowAt(p fieldpath.Path, was, is []fieldpath.Path, comes bool, once func(place)) {
	for n := 1; n <= len(p); n++ {
		at := t.follow(p[:n])
		below := func(q fieldpath.Path) bool { return len(q) >= n && q[:n].Equals(p[:n]) }
		switch {
		case at.missing || !at.container:
			return
		case p[n-1].FieldName == nil || n == 1 && *p[0].FieldName == "metadata" || slices.ContainsFunc(is, below):
		case comes || slices.ContainsFunc(was, below):
			t.unowned(p[:n], once, nil, nil)
			return
		}
	}
}

// values are the owned paths of values that are neither null nor empty, and have no owned parts.
func (t transfer) values(in ownerList, of func(place) *value) (out []fieldpath.Path) {
	for _, e := range in {
		for _, p := range pathsOf(t.named(e)) {
			at := t.follow(p)
			v := of(at.place)
			fields, items := at.atom.Map, at.atom.List
			isWhole := fields != nil && fields.ElementRelationship == "atomic" && len(v.names()) > 0
			if !at.missing && (v.isScalar() || isWhole || items != nil && items.ElementRelationship != "associative" && len(itemsOf(v)) > 0) {
				out = append(out, p)
			}
		}
	}
	return out
}

func has(list []fieldpath.Path, p fieldpath.Path) bool {
	return slices.ContainsFunc(list, func(q fieldpath.Path) bool { return q.Equals(p) })
}

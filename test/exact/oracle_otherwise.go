package exact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/verbs"
)

// named returns the paths of an entry in the names of the request's version.
func (t transfer) named(e ownerEntry) *fieldpath.Set {
	if e.set == nil {
		return fieldpath.NewSet()
	}
	if t.ofVersion(e) {
		return e.set
	}
	return t.kind.Alike(e.version, e.set)
}

// split divides the paths of a manager into paths with the same names in the request's version, and the rest. A stored object has the names
// of one version. About an unknown version nothing else is known.
func (t transfer) split(in ownerList, m manager) (here, otherwise *fieldpath.Set) {
	all := in.of(m)
	if !in.has(m) || t.stored != nil || !t.kind.Knows(in.one(m).version) {
		return all, fieldpath.NewSet()
	}
	here = t.named(in.one(m))
	return here, all.Difference(here)
}

// lostOtherwise charges a path that another version names: everything if nothing changed at it, and otherwise the barriers that the path
// may concern.
func (t transfer) lostOtherwise(m manager, p fieldpath.Path, once func(place)) {
	as := t.others[t.was.one(m).version]
	switch {
	case t.merged(m, p):
		return
	case as == nil || !t.follow(p).changed(t.oracle):
		t.everything(once)
		return
	}
	item := isKey(p)
	if item {
		p = p[:len(p)-1]
	}
	there := t.in(as, p)
	// Owners of a container are lost only together with the container.
	fields, items := there.atom.Map, there.atom.List
	if item || there.barred() || fields != nil && fields.ElementRelationship != "atomic" || items != nil && items.ElementRelationship == "associative" {
		once(there.place)
	}
	barriers := there.node.BarredWithin(t.uncovered)
	for _, v := range append(barriers, as.kind.HiddenBarriers(t.uncovered)...) {
		once(place{chain: []verbs.Verb{v}})
	}
}

// everything charges the object and the guarded places in it.
func (t transfer) everything(once func(place)) {
	once(t.root)
	t.guardedAnywhere(once)
}

// guardedAnywhere charges every possible barrier of the object.
func (t transfer) guardedAnywhere(once func(place)) {
	for _, v := range t.kind.Root.BarredWithin(t.uncovered) {
		once(place{chain: []verbs.Verb{v}})
	}
}

// gainsOtherwise reports whether a manager gains a path in an entry of another version that the server did not merge into it.
func (t transfer) gainsOtherwise(m manager, gained *fieldpath.Set) bool {
	if t.stored != nil || !t.is.has(m) || t.ofVersion(t.is.one(m)) || gained.Empty() && !t.changesVersion(m) {
		return false
	}
	return !t.isBucket(m) || slices.ContainsFunc(pathsOf(gained), func(p fieldpath.Path) bool { return !t.vanishedHad(m, p) })
}

func (t transfer) changesVersion(m manager) bool {
	return t.was.has(m) && t.is.has(m) && t.was.one(m).version != t.is.one(m).version
}

// folded replaces the parts of atomic values by these values.
func (t transfer) folded(as *subject, owns *fieldpath.Set) *fieldpath.Set {
	for _, p := range pathsOf(owns) {
		for n := 1; n < len(p); n++ {
			at := t.in(as, p[:n])
			if at.atom.Map != nil && at.atom.List != nil {
				continue // structured-merge-diff leaves the parts of fields that no schema knows.
			}
			if (at.atom.Map == nil || at.atom.Map.ElementRelationship != "atomic") && (at.atom.List == nil || at.atom.List.ElementRelationship == "associative") {
				continue
			}
			owns = owns.Difference(fieldpath.NewSet(p)).Union(fieldpath.NewSet(p[:n]))
			break
		}
	}
	return owns
}

// unfolded reports whether a manager has parts of an atomic value, which no API server writes.
func (t transfer) unfolded(m manager) bool {
	if !t.is.has(m) {
		return false
	}
	set, as := t.is.of(m), t.others[t.is.one(m).version]
	if as == nil {
		as = t.subject
	}
	return !t.folded(as, set).Equals(set)
}

// breaks reports whether a manager gains either the own entry of an item or one of its keys without the others, or, if it applies, a path
// in the item without them.
func (t transfer) breaks(m manager, p fieldpath.Path) bool {
	if m.operation == "Apply" && t.is.of(m).Has(p) {
		for n := 1; n < len(p); n++ {
			if t.breaksItem(m, p[:n]) {
				return true
			}
		}
	}
	n := len(p)
	if isKey(p) {
		n--
	}
	return t.breaksItem(m, p[:n])
}

func (t transfer) breaksItem(m manager, item fieldpath.Path) bool {
	keys := item[len(item)-1].Key
	if keys == nil || !t.is.has(m) {
		return false
	}
	set, as := t.is.of(m), t.others[t.is.one(m).version]
	if !set.Has(item) {
		return m.operation == "Apply" && t.any(set, item) || slices.ContainsFunc(*keys, func(k smdvalue.Field) bool {
			return set.Has(append(slices.Clone(item), fieldpath.PathElement{FieldName: &k.Name}))
		})
	}
	if !t.any(set, item) {
		return false
	}
	if as == nil {
		as = t.subject
	}
	there := t
	there.oracle = t.without(as)
	there.root = there.enter(place{barrier: -1}, there.oracle.root, there.kind.Root, "", nil, nil, nil)
	return !there.owns(set, item)
}

// in follows a path in another version, whose values are unknown.
func (t transfer) in(as *subject, p fieldpath.Path) end {
	t.oracle = t.without(as)
	t.root = t.enter(place{barrier: -1}, t.oracle.root, t.kind.Root, "", nil, nil, nil)
	return t.follow(p)
}

// without is the oracle of another version, without values.
func (t transfer) without(as *subject) *oracle {
	one := *as
	one.uncovered = t.uncovered
	return &oracle{subject: &one, owning: true, canon: t.canon, lists: t.lists, tokens: t.tokens}
}

package exact

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/verbs"
)

// named returns what an entry owns in the names of the request's version.
func (t transfer) named(e ownerEntry) *fieldpath.Set {
	out := fieldpath.NewSet()
	if e.set == nil {
		return out
	}
	for _, p := range pathsOf(e.set) {
		if t.ofVersion(e) || t.kind.IsAlike(e.version, p) {
			out.Insert(p)
		}
	}
	return out
}

// split divides what a manager owns into what has the same names in the request's version, and the rest. What is stored has the names of one
// version, and of a version that nobody knows nothing else can be said.
func (t transfer) split(in ownerList, m who) (here, otherwise *fieldpath.Set) {
	all := in.of(m)
	if !in.has(m) || t.stored != nil || t.others[in.one(m).version] == nil {
		return all, fieldpath.NewSet()
	}
	here = t.named(in.one(m))
	return here, all.Difference(here)
}

// lostOtherwise charges a path that another version names: everything if nothing changed near it, and else the barriers that it may be
// about.
func (t transfer) lostOtherwise(m who, p fieldpath.Path, once func(place)) {
	at := t.follow(p)
	switch {
	case t.merged(m, p):
		return
	case !at.changed(t.oracle) && !at.above && !(at.container && t.changedAt(at.place)):
		t.everything(once)
		return
	}
	as := t.others[t.was.one(m).version]
	if len(p) > 1 && p[len(p)-1].FieldName != nil && isKeyOf(p[len(p)-2], *p[len(p)-1].FieldName) {
		p = p[:len(p)-1]
	}
	there := t.in(as, p)
	if there.barrier >= 0 {
		once(there.place)
	}
	barriers := there.node.BarredWithin(t.uncovered)
	if p[0].FieldName == nil || as.kind.Lossy() || as.kind.MayHide(*p[0].FieldName) {
		barriers = append(barriers, as.kind.HiddenBarriers(t.uncovered)...)
	}
	for _, v := range barriers {
		once(place{chain: []verbs.Verb{v}})
	}
}

// everything charges the object, and what is guarded in it.
func (t transfer) everything(once func(place)) {
	once(t.root)
	t.asIfGone(t.root, once)
	t.asIfGone(t.root.half(t.root.new, nil), once)
}

// gainsOtherwise reports whether a manager gains in another version's entry what the server did not merge into it.
func (t transfer) gainsOtherwise(m who, gained *fieldpath.Set) bool {
	if t.stored != nil || !t.is.has(m) || t.ofVersion(t.is.one(m)) || gained.Empty() && !t.changesVersion(m) {
		return false
	}
	return !t.isBucket(m) || slices.ContainsFunc(pathsOf(gained), func(p fieldpath.Path) bool { return !t.vanishedHad(m, p) })
}

func (t transfer) changesVersion(m who) bool {
	return t.was.has(m) && t.is.has(m) && t.was.one(m).version != t.is.one(m).version
}

// folded leaves out the parts of what is atomic, where the manager owns the whole now.
func (t transfer) folded(lost, gained *fieldpath.Set, m who) (parts, wholes *fieldpath.Set) {
	parts, wholes = lost, gained
	for _, p := range pathsOf(lost) {
		for n := 1; n < len(p); n++ {
			at := t.follow(p[:n])
			if at.missing && at.old == nil && at.new == nil && at.path == "" {
				break
			}
			m1, l1 := at.atom.Map, at.atom.List
			atomic := p[n].FieldName != nil && m1 != nil && m1.ElementRelationship == "atomic" || p[n].FieldName == nil && l1 != nil && l1.ElementRelationship != "associative"
			if !atomic {
				continue
			}
			if t.is.of(m).Has(p[:n]) {
				parts, wholes = parts.Difference(fieldpath.NewSet(p)), wholes.Difference(fieldpath.NewSet(p[:n]))
			}
			break
		}
	}
	return parts, wholes
}

// breaks reports whether a manager comes to own one of an item's own entry and keys without the others.
func (t transfer) breaks(m who, p fieldpath.Path) bool {
	n := len(p)
	if n > 1 && p[n-1].FieldName != nil && isKeyOf(p[n-2], *p[n-1].FieldName) {
		n--
	}
	item := p[:n]
	if item[n-1].Key == nil || !t.is.has(m) {
		return false
	}
	set, as := t.is.of(m), t.others[t.is.one(m).version]
	if !set.Has(item) {
		for _, k := range *item[n-1].Key {
			if set.Has(append(slices.Clone(item), fieldpath.PathElement{FieldName: &k.Name})) {
				return true
			}
		}
		return false
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

// in follows a path in another version, of which no values are known.
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

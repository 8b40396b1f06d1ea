package exact

import (
	"encoding/json"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/verbs"
)

// lossIsFree: with the value; by the server's merge of old entries; as the shell of an item that the manager leaves for good, something
// of its own in it having changed, and that one who updates has.
func (t transfer) lossIsFree(m who, p fieldpath.Path) bool {
	if m.operation == "Update" && t.vanished(m) && t.mayMerge() && t.is.of(who{"ancient-changes", "Update", "", m.version}).Has(p) {
		return true
	}
	e := t.follow(p)
	switch {
	case e.changed(t.oracle):
		return true
	case e.container || e.keyField:
		item := e.shell(p)
		left := slices.ContainsFunc(pathsOf(t.was.of(m).Difference(t.is.of(m))), func(lost fieldpath.Path) bool {
			return inside(lost, item) && t.follow(lost).changed(t.oracle)
		})
		return m.operation == "Apply" && item[len(item)-1].Key != nil && left && !t.any(t.is.of(m), item) &&
			t.keeps(item, func(other who) bool { return other.operation == "Update" })
	}
	return false
}

// otherwise charges what leads nowhere as the version says that it is of. What another version calls otherwise is behind a barrier by
// the verbs of that version, and by those that it may have under names that it does not say.
func (t transfer) otherwise(p fieldpath.Path, e ownerEntry, barriersOnly bool, once func(place)) {
	if t.stored != nil {
		return // What is stored has the names of one version.
	}
	as := t.others[e.version]
	if as == nil {
		if !barriersOnly {
			once(t.root)
			t.asIfGone(t.root, once)
		}
		return
	}
	if as.kind.Lossy() && !barriersOnly {
		once(t.root)
		t.asIfGone(t.root, once)
	}
	at := t.in(as, p)
	if !barriersOnly || at.barrier >= 0 {
		once(at.place)
	}
	if (at.node.Map() != nil || at.node.List() != nil) && (len(t.uncovered) > 0 || at.node.MayBarWithin() || at.node.MayStandApartWithin()) {
		t.asIfGone(t.root, once)
	}
	if p[0].FieldName == nil || as.kind.Lossy() || as.kind.MayHide(*p[0].FieldName) {
		for _, v := range as.kind.HiddenBarriers(t.uncovered) {
			once(place{chain: []verbs.Verb{v}})
		}
	}
}

// gainIsFree: with the value; by the server's own entries; as the shell of an item that another has all along, together with something
// in it that is no shell.
func (t transfer) gainIsFree(m who, p fieldpath.Path, gained *fieldpath.Set) bool {
	e := t.follow(p)
	sameVersion := t.ofVersion(t.is.one(m))
	if e.changed(t.oracle) && sameVersion {
		return true
	}
	if m.operation == "Apply" {
		item := e.shell(p)
		with := slices.ContainsFunc(pathsOf(gained), func(other fieldpath.Path) bool {
			at := t.follow(other)
			return inside(other, item) && !at.container && !at.keyField
		})
		return sameVersion && (e.container || e.keyField) && item[len(item)-1].Key != nil && with && !t.any(t.was.of(m), item) &&
			t.keeps(item, func(who) bool { return true })
	}
	switch {
	case m.name == "before-first-apply":
		return len(t.was) == 0
	case m.name == "ancient-changes" && t.mayMerge():
		return slices.ContainsFunc(t.was.managers(), func(other who) bool {
			return t.vanishedUpdate(other) && other.version == m.version && t.was.of(other).Has(p)
		})
	}
	return false
}

// namesake charges the barrier of what has the same path in another version, which lost its owner, where nothing has that barrier here.
func (t transfer) namesake(p fieldpath.Path, e ownerEntry, once func(place)) {
	here := t.follow(p)
	if as := t.others[e.version]; t.stored == nil && as != nil && !t.ofVersion(e) && !here.missing {
		if at := t.in(as, p); at.barrier > 0 && !slices.Contains(here.chain, at.chain[at.barrier]) {
			once(at.place)
		}
	}
}

// in follows a path in another version, of which no values are known.
func (t transfer) in(as *subject, p fieldpath.Path) end {
	one := *as
	one.uncovered = t.uncovered
	t.oracle = &oracle{subject: &one, owning: true, canon: t.canon, lists: t.lists, tokens: t.tokens}
	t.root = t.enter(place{barrier: -1}, one.root, one.kind.Root, "", nil, nil, nil)
	return t.follow(p)
}

// keeps reports whether managers have an item all along, between them all that it takes.
func (t transfer) keeps(item fieldpath.Path, by func(who) bool) bool {
	all := fieldpath.NewSet()
	t.anybody(func(m who, set *fieldpath.Set) bool {
		if by(m) {
			all = all.Union(set)
		}
		return false
	})
	return t.owns(all, item)
}

// owns reports whether a set has a path, and the keys if it is an item: structured-merge-diff keeps no item without them.
func (t transfer) owns(set *fieldpath.Set, p fieldpath.Path) bool {
	keys := p[len(p)-1].Key
	return set.Has(p) && (keys == nil || !slices.ContainsFunc(*keys, func(k smdvalue.Field) bool {
		fallback := t.keyValue(t.follow(p[:len(p)-1]).atom.List, k.Name, &value{kind: object})
		return !set.Has(append(slices.Clone(p), fieldpath.PathElement{FieldName: &k.Name})) && (fallback == nil || fallback.canonical() != fromSMD(k.Value).canonical())
	}))
}

// anybody reports whether a manager has something all along, by an entry of the object's version.
func (t transfer) anybody(has func(who, *fieldpath.Set) bool) bool {
	for _, e := range t.is {
		switch {
		case !t.ofVersion(e) || e.set == nil:
		case !slices.Contains(t.moved, e.who), len(t.was) == 0 && e.name == "before-first-apply" && e.operation == "Update":
			if has(e.who, e.set) {
				return true
			}
		case t.was.has(e.who) && t.was.one(e.who).version == e.version && has(e.who, e.set.Intersection(t.was.of(e.who))):
			return true
		}
	}
	return false
}

// ofVersion reports whether an entry is of the request's version.
func (o *oracle) ofVersion(e ownerEntry) bool {
	version, _ := o.version()
	return e.version == version
}

// otherGroup reports whether an entry is of another group than the request: no API server keeps such entries.
func (o *oracle) otherGroup(e ownerEntry) bool {
	version, known := o.version()
	asked, _ := runtimeschema.ParseGroupVersion(version)
	wrote, _ := runtimeschema.ParseGroupVersion(e.version)
	return known && version != "" && asked.Group != wrote.Group
}

// shell is what p is the own entry or a key of.
func (e end) shell(p fieldpath.Path) fieldpath.Path {
	if e.keyField {
		return p[:len(p)-1]
	}
	return p
}

func inside(p, item fieldpath.Path) bool {
	return len(p) > len(item) && p[:len(item)].Equals(item)
}

// any reports whether a set has something below a path.
func (t transfer) any(set *fieldpath.Set, p fieldpath.Path) bool {
	return slices.ContainsFunc(pathsOf(set), func(q fieldpath.Path) bool { return inside(q, p) })
}

func (t transfer) vanishedUpdate(m who) bool { return m.operation == "Update" && t.vanished(m) }

func (t transfer) vanished(m who) bool {
	return !t.is.has(m)
}

// mayMerge: an API server keeps ten Update entries, and merges no more than it must to have room for the
// requester's and for the bucket.
func (t transfer) mayMerge() bool {
	if t.was.updates() < 10 || t.is.updates() < 10 {
		return false
	}
	gone := 0
	for _, m := range t.was.managers() {
		if m.operation == "Update" && t.vanished(m) {
			gone++
		}
	}
	return gone <= t.was.updates()-10+2
}

// fromSMD reads a key as managedFields hold it.
func fromSMD(v smdvalue.Value) *value {
	raw, err := json.Marshal(v.Unstructured())
	if err != nil {
		return &value{kind: null}
	}
	out, err := parse(raw)
	if err != nil {
		return &value{kind: null}
	}
	return out
}

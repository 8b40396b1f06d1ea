package exact

import (
	"bytes"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/schema"
)

// who is a manager. A version is part of those who update, not of those who apply.
type who struct{ name, operation, subresource, version string }

type ownerEntry struct {
	who
	version, time string
	// raw is FieldsV1, nil if there is none, and set what it means, nil if it means nothing.
	raw *value
	set *fieldpath.Set
}

type ownerList []ownerEntry

// readOwners fails for what no API server writes.
func readOwners(v *value) (ownerList, bool) {
	if v == nil || v.is(null) {
		return nil, true
	}
	if !v.is(list) {
		return nil, false
	}
	var out ownerList
	for _, item := range v.items {
		e, ok := readOwner(item)
		if !ok {
			return nil, false
		}
		out = append(out, e)
	}
	return out, true
}

func readOwner(item *value) (ownerEntry, bool) {
	e := ownerEntry{set: fieldpath.NewSet()}
	if !item.is(object) || item.repeats() {
		return e, false
	}
	fieldsType := ""
	for _, m := range item.members {
		if m.value.is(null) {
			continue
		}
		into := map[string]*string{"manager": &e.name, "operation": &e.operation, "subresource": &e.subresource, "apiVersion": &e.version, "time": &e.time, "fieldsType": &fieldsType}[m.name]
		switch {
		case into != nil && m.value.is(text):
			*into = m.value.text
		case m.name == "fieldsV1":
			if e.raw = m.value; !m.value.is(object) {
				return e, false
			}
			e.set, _ = decodeSet(m.value)
		default:
			return e, false
		}
	}
	if e.operation == "Update" {
		e.who.version = e.version
	}
	return e, fieldsType == "FieldsV1" && (e.operation == "Apply" || e.operation == "Update")
}

// decodeSet fails for what the library would read as something else than it is.
func decodeSet(v *value) (*fieldpath.Set, bool) {
	set := fieldpath.NewSet()
	if !v.is(object) || set.FromJSON(bytes.NewReader(v.compact())) != nil {
		return nil, false
	}
	if written(set).canonical() != v.canonical() {
		return nil, false
	}
	return set, true
}

// written is how the library writes a set.
func written(set *fieldpath.Set) *value {
	raw, err := set.ToJSON()
	if err != nil {
		return &value{kind: object}
	}
	v, err := parse(raw)
	if err != nil {
		return &value{kind: object}
	}
	return v
}

func (l ownerList) managers() []who {
	var out []who
	for _, e := range l {
		if !slices.Contains(out, e.who) {
			out = append(out, e.who)
		}
	}
	return out
}

func (l ownerList) of(m who) *fieldpath.Set {
	out := fieldpath.NewSet()
	for _, e := range l {
		if e.who == m && e.set != nil {
			out = out.Union(e.set)
		}
	}
	return out
}

func (l ownerList) updates() int {
	n := 0
	for _, e := range l {
		if e.operation == "Update" {
			n++
		}
	}
	return n
}

// ownership charges owners that change while values stay (D8).
func (o *oracle) ownership(root place) {
	if o.owned == nil {
		return
	}
	was, wasOK := readOwners(o.owned.old)
	is, isOK := readOwners(o.owned.new)
	managers, sound := moved(was, is)
	switch {
	case o.create && wasOK && isOK && sound && len(is) < 2:
		return
	case !wasOK || !isOK || !sound, o.create:
		o.charge(*o.owned, owned)
		if !o.create {
			o.asIfGone(root, o.chargeOnce(map[string]bool{}))
		}
		return
	}
	t := transfer{oracle: o, root: root, was: was, is: is, moved: managers, walked: &[]fieldpath.Path{}}
	if !t.timesAreFree() {
		o.charge(*o.owned, owned)
	}
	once := o.chargeOnce(map[string]bool{})
	charge := func(p fieldpath.Path) {
		at := t.follow(p)
		once(at.place)
		switch {
		case at.missing:
		case at.container && t.isField(p):
			t.unowned(p, once, &at.place)
		default:
			o.asIfGone(at.place, once)
		}
	}
	for _, m := range managers {
		lost, gained := was.of(m).Difference(is.of(m)), is.of(m).Difference(was.of(m))
		if was.has(m) && is.has(m) && was.one(m).version != is.one(m).version {
			gained = is.of(m)
		}
		for _, p := range pathsOf(lost) {
			if !t.lossIsFree(m, p) {
				charge(p)
			}
		}
		for _, p := range pathsOf(gained) {
			if !t.gainIsFree(m, p, gained) {
				charge(p)
			}
		}
		if m.operation != "Apply" {
			continue
		}
		for _, p := range pathsOf(gained) {
			if n := t.pruned(p); n > 0 {
				t.unowned(p[:n], once, nil)
			}
		}
	}
}

// chargeOnce charges a place once, however many managers it concerns. Paths may look alike and be guarded by other verbs.
func (o *oracle) chargeOnce(charged map[string]bool) func(place) {
	return func(p place) {
		c := o.chargeOf(p, owned)
		if !charged[c.String()] {
			charged[c.String()] = true
			o.charges = append(o.charges, c)
		}
	}
}

func pathsOf(set *fieldpath.Set) (out []fieldpath.Path) {
	set.Iterate(func(shared fieldpath.Path) { out = append(out, slices.Clone(shared)) })
	return out
}

// moved returns the managers with other entries than before, times aside. It fails if such an entry cannot be read:
// what stays need not be understood.
func moved(was, is ownerList) ([]who, bool) {
	var out []who
	for _, m := range append(was.managers(), is.managers()...) {
		before, after := "", ""
		sound := true
		for i, e := range append(was[:len(was):len(was)], is...) {
			into := &before
			if i >= len(was) {
				into = &after
			}
			if e.who == m {
				*into += e.version + "\x00" + e.raw.canonical() + "\x00"
				sound = sound && e.set != nil && e.version != ""
			}
		}
		if before == after && was.has(m) == is.has(m) || slices.Contains(out, m) {
			continue
		}
		if !sound || was.count(m) > 1 || is.count(m) > 1 {
			return nil, false
		}
		out = append(out, m)
	}
	return out, true
}

func (l ownerList) has(m who) bool {
	return slices.ContainsFunc(l, func(e ownerEntry) bool { return e.who == m })
}

func (l ownerList) count(m who) (n int) {
	for _, e := range l {
		if e.who == m {
			n++
		}
	}
	return n
}

// one is the first entry of a manager that has some.
func (l ownerList) one(m who) ownerEntry {
	return l[slices.IndexFunc(l, func(e ownerEntry) bool { return e.who == m })]
}

// timesAreFree: an API server sets the time of one entry that updates, which has something of what the request changed; that of
// who applies something else; and that of the bucket for old entries.
func (t transfer) timesAreFree() bool {
	later := 0
	for _, m := range t.is.managers() {
		all := slices.DeleteFunc(slices.Clone(t.is), func(e ownerEntry) bool { return e.who != m })
		for i, before := range slices.DeleteFunc(slices.Clone(t.was), func(e ownerEntry) bool { return e.who != m }) {
			switch {
			case i >= len(all), before.time == all[i].time:
			case m.operation == "Apply" && slices.Contains(t.moved, m):
			case m.operation == "Apply" && slices.ContainsFunc(t.charges, func(c charge) bool { return c.operation == reordered }):
				later++
			case m.name == "ancient-changes" && m.operation == "Update" && t.mayMerge() && slices.ContainsFunc(t.was.managers(), t.vanishedUpdate):
			case all[i].set == nil || !slices.ContainsFunc(pathsOf(all[i].set), func(p fieldpath.Path) bool { return t.follow(p).changed(t.oracle) }):
				return false
			default:
				later++
			}
		}
	}
	return later < 2
}

// version is that of the request.
func (o *oracle) version() (string, bool) {
	if o.through != "" {
		return o.through, true
	}
	v := o.new.get("apiVersion")
	if !v.is(text) {
		return "", false
	}
	return v.text, true
}

// transfer is one comparison of owners.
type transfer struct {
	*oracle
	root    place
	was, is ownerList
	// moved are the managers whose entries differ.
	moved []who
	// walked are the containers whose unowned parts are charged.
	walked *[]fieldpath.Path
}

// end is where a path of managedFields leads.
type end struct {
	place
	// container: what stays there is an object or keyed list that is not empty on both sides.
	container bool
	// keyField: a key property of an item that stays.
	keyField bool
	// missing: nothing is there on either side; above says whether what is nearest above it changed.
	missing, above bool
}

func (e end) changed(o *oracle) bool {
	return !e.missing && !e.container && !o.same(e.old, e.new)
}

func (t transfer) follow(path fieldpath.Path) end {
	p := t.root
	near := p
	keyField := false
	for i, e := range path {
		if p.old != nil || p.new != nil {
			near = p
		}
		keyField = false
		switch {
		case e.FieldName != nil && p.atom.Map != nil:
			keyField = i > 0 && p.old != nil && p.new != nil && isKeyOf(path[i-1], *e.FieldName)
			was, is := p.old.get(*e.FieldName), p.new.get(*e.FieldName)
			halves := t.halves(t.member(p, *e.FieldName, was, is))
			p = halves[len(halves)-1].half(was, is)
		case (e.Key != nil || e.Value != nil) && p.atom.List != nil:
			p = t.followItem(p, e)
		case e.Index != nil && p.atom.List != nil:
			p = t.at(p, *e.Index, itemAt(p.old, *e.Index), itemAt(p.new, *e.Index))
		default:
			return end{place: p, missing: true, above: t.changedAt(near)}
		}
	}
	if p.old == nil && p.new == nil {
		return end{place: p, keyField: keyField, missing: true, above: t.changedAt(near)}
	}
	return end{place: p, container: container(p), keyField: keyField}
}

func container(p place) bool {
	old, new := p.old, p.new
	switch {
	case old.is(object) && new.is(object) && p.atom.Map != nil && p.atom.Map.ElementRelationship != "atomic":
		return len(old.members)+len(new.members) > 0
	case old.is(list) && new.is(list) && p.atom.List != nil && p.atom.List.ElementRelationship == "associative":
		return len(old.items)+len(new.items) > 0
	}
	return false
}

func isKeyOf(e fieldpath.PathElement, name string) bool {
	if e.Key == nil {
		return false
	}
	for _, f := range *e.Key {
		if f.Name == name {
			return true
		}
	}
	return false
}

// followItem finds the items with the keys that the element names, the first of each side.
func (t transfer) followItem(p place, e fieldpath.PathElement) place {
	var like *value
	if e.Value != nil {
		like = fromSMD(*e.Value)
	} else {
		like = &value{kind: object}
		for _, f := range *e.Key {
			like.members = append(like.members, member{f.Name, fromSMD(f.Value)})
		}
	}
	find := func(v *value) *value {
		id, ok := t.identity(p.atom.List, like)
		for _, item := range itemsOf(v) {
			if other, keyed := t.identity(p.atom.List, item); ok && keyed && id == other {
				return item
			}
		}
		return nil
	}
	old, new := find(p.old), find(p.new)
	for _, found := range []*value{old, new} {
		if found != nil {
			like = found
		}
	}
	next := t.item(p, like, old, new)
	if old == nil && new == nil && like.isScalar() {
		// What is gone on both sides still has the verb of its value.
		next = next.emitting(like)
	}
	return next
}

func itemAt(v *value, i int) *value {
	if items := itemsOf(v); i >= 0 && i < len(items) {
		return items[i]
	}
	return nil
}

// changedAt: around what has a role something always changes.
func (t transfer) changedAt(p place) bool {
	if t.same(p.old, p.new) || p.node.Role() == schema.RoleServerWritten || p.node.Role() == schema.RoleOwnership {
		return false
	}
	if p.atom.Map == nil || !p.old.is(object) || !p.new.is(object) || p.old.repeats() || p.new.repeats() {
		return true
	}
	for _, name := range append(p.old.names(), p.new.names()...) {
		if t.changedAt(t.member(p, name, p.old.get(name), p.new.get(name))) {
			return true
		}
	}
	return false
}

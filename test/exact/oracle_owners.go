package exact

import (
	"slices"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ownership charges owners that change while values stay (D8).
func (o *oracle) ownership(root place) {
	if o.owned == nil {
		o.emptied(root)
		return
	}
	o.owning = true
	was, wasOK := readOwners(o.owned.old)
	is, isOK := readOwners(o.owned.new)
	if was = was.lastOfEach(); o.stored != nil {
		is = is.lastOfEach()
	}
	e, only := o.onlyTime()
	if only {
		o.emptied(root)
		was, is, wasOK, isOK = ownerList{e[0]}, ownerList{e[1]}, true, true
	}
	managers, sound := moved(was, is)
	switch {
	case o.create && wasOK && isOK && sound && len(is) < 2:
		t, once := transfer{oracle: o, root: root, is: is}, o.chargeOnce(map[string]bool{})
		for _, p := range t.lacking() {
			once(t.follow(p).place)
		}
		return
	case !wasOK || !isOK || !o.create && !sound:
		transfer{oracle: o, root: root}.everything(o.chargeOnce(map[string]bool{}))
		return
	case o.create:
		o.charge(*o.owned, owned)
		return
	}
	written := len(o.charges) > 0
	t := transfer{oracle: o, root: root, was: was, is: is, moved: managers, walked: &[]fieldpath.Path{}, brought: &[]fieldpath.Path{}}
	once := o.chargeOnce(map[string]bool{})
	switch {
	case t.ages():
		t.everything(once)
	case !t.timesAreFree():
		once(t.follow(fieldpath.MakePathOrDie("metadata", "managedFields")).place) // With the barriers that hold for owners.
	}
	charge := func(p fieldpath.Path) {
		at := t.follow(p)
		once(at.place)
		switch {
		case at.missing:
		case at.container && t.isField(p):
			t.unowned(p, once, &at.place, nil)
		case at.keyField:
			item := t.follow(at.shell(p))
			once(item.place)
			o.asIfGone(item.place, once)
		default:
			o.asIfGone(at.place, once)
		}
	}
	for _, m := range managers {
		if !written || is.has(m) || !t.otherGroup(was.one(m)) {
			t.compare(m, once, charge)
		}
	}
	for _, m := range is.managers() {
		if t.comesToApply(m) && !t.isBucket(m) {
			here, otherwise := t.split(is, m)
			if !otherwise.Empty() {
				t.everything(once)
			}
			for _, p := range pathsOf(here) {
				if !t.follow(p).changed(o) {
					charge(p)
				}
				t.takes(m, p, once)
			}
		}
	}
	if !only {
		t.hollow(once)
	}
}

// compare charges the paths that a manager gained and lost.
func (t transfer) compare(m manager, once func(place), charge func(fieldpath.Path)) {
	before, otherBefore := t.split(t.was, m)
	after, otherAfter := t.split(t.is, m)
	if !t.changesVersion(m) {
		// An API server that folds the parts leaves none. In a version that is not known, parts that stay are not folded.
		wrote := t.is
		if t.was.has(m) {
			wrote = t.was
		}
		as, whole := t.others[wrote.one(m).version], t.folded(t.subject, after)
		if as != nil || whole.Equals(after) {
			before, after = t.folded(t.subject, before), whole
		}
		if as != nil {
			otherBefore, otherAfter = t.folded(as, otherBefore), t.folded(as, otherAfter)
		}
	}
	otherBefore, otherAfter = otherBefore.Difference(otherAfter), otherAfter.Difference(otherBefore)
	lost, gained := before.Difference(after), after.Difference(before)
	if t.changesVersion(m) && !t.kind.Knows(t.was.one(m).version) {
		lost, gained = before, after
	}
	if t.unfolded(m) {
		t.everything(once)
	}
	for _, p := range slices.Concat(pathsOf(lost), pathsOf(gained), pathsOf(otherBefore)) {
		if t.breaks(m, p) {
			t.everything(once)
		}
	}
	for _, p := range pathsOf(otherBefore) {
		t.lostOtherwise(m, p, once)
	}
	if t.gainsOtherwise(m, gained.Union(otherAfter)) {
		t.everything(once)
		gained = fieldpath.NewSet()
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
	if !t.applies(m) || t.isBucket(m) {
		return
	}
	for _, p := range pathsOf(gained) {
		t.takes(m, p, once)
	}
}

// takes charges the guarded places at a path that changes, and the fields around it that have no owner: the next apply of the manager may
// leave them out.
func (t transfer) takes(m manager, p fieldpath.Path, once func(place)) {
	if at := t.follow(p); at.changed(t.oracle) && !t.writesManifest(m, p) {
		if at.barred() {
			once(at.place)
		}
		t.asIfGone(at.place, once)
		t.asIfGone(at.place.half(at.new, nil), once)
	}
	n, brought := t.pruned(m, p)
	for _, k := range brought {
		whole := t.follow(p[:k]).place
		t.unowned(p[:k], once, &whole, t.brought)
	}
	if n > 0 {
		t.unowned(p[:n], once, nil, nil)
		if at := t.follow(p[:n]).place; (container(at) || at.isEmpty()) && len(at.old.members)+len(at.old.items) == 0 {
			once(at) // It is removed itself, and has no part that says so.
		}
	}
}

// chargeOnce charges a place once, for any number of managers. Different places with equal paths may have other verbs.
func (o *oracle) chargeOnce(charged map[string]bool) func(place) {
	return func(p place) {
		for _, c := range o.chargesOf(p, owned) {
			if !charged[c.String()] {
				charged[c.String()] = true
				o.charges = append(o.charges, c)
			}
		}
	}
}

func pathsOf(set *fieldpath.Set) (out []fieldpath.Path) {
	set.Iterate(func(shared fieldpath.Path) { out = append(out, slices.Clone(shared)) })
	return out
}

// moved returns the managers whose entries changed, without regard to times. It fails if a changed entry cannot be read. An unchanged entry
// need not be readable.
func moved(was, is ownerList) ([]manager, bool) {
	var out []manager
	for _, m := range append(was.managers(), is.managers()...) {
		before, after := "", ""
		sound := true
		for i, e := range append(was[:len(was):len(was)], is...) {
			into := &before
			if i >= len(was) {
				into = &after
			}
			if e.manager == m {
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

// lacking returns what the creator of an object owns and the object lacks.
func (t transfer) lacking() []fieldpath.Path {
	if len(t.is) != 1 || t.is[0].set == nil {
		return nil
	}
	return slices.DeleteFunc(pathsOf(t.is[0].set), func(p fieldpath.Path) bool { return !t.follow(p).missing })
}

// onlyTime returns the only entry that differs, before and after, if only its time differs. The other entries need not be readable.
func (o *oracle) onlyTime() (e [2]ownerEntry, only bool) {
	old, new := itemsOf(o.owned.old), itemsOf(o.owned.new)
	if len(old) != len(new) {
		return e, false
	}
	differ := 0
	for i := range old {
		if o.same(old[i], new[i]) {
			continue
		}
		was, ok1 := readOwner(old[i])
		is, ok2 := readOwner(new[i])
		differ++
		only = ok1 && ok2 && was.manager == is.manager && was.version == is.version && was.raw.canonical() == is.raw.canonical()
		e = [2]ownerEntry{was, is}
	}
	return e, only && differ == 1
}

// ages reports whether a time changes to a value that API servers treat as no time.
func (t transfer) ages() bool {
	// Stored objects have such times from writes of the Scale.
	return t.stored == nil && slices.ContainsFunc(t.is, func(e ownerEntry) bool {
		at, err := time.Parse(time.RFC3339, e.time)
		return t.was.has(e.manager) && t.was.one(e.manager).time != e.time && (err != nil || at.Unix() <= 0)
	})
}

// timesAreFree reports whether the API server itself may have set the changed times. It sets the time of one manager that updates and owns
// a changed field, of a manager that applies a different set than before, and of the bucket of old entries.
func (t transfer) timesAreFree() bool {
	later := 0
	for _, m := range t.is.managers() {
		all := slices.DeleteFunc(slices.Clone(t.is), func(e ownerEntry) bool { return e.manager != m })
		for i, before := range slices.DeleteFunc(slices.Clone(t.was), func(e ownerEntry) bool { return e.manager != m }) {
			switch {
			case i >= len(all), before.time == all[i].time:
			case t.stored != nil && all[i].time == "": // A write of the Scale causes this.
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

// version is the version of the request.
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
	moved []manager
	// walked are the containers whose unowned parts are charged.
	walked *[]fieldpath.Path
	// brought are the containers among them in which other managers apply a field.
	brought *[]fieldpath.Path
}

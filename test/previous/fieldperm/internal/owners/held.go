package owners

import smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// holds returns the paths that the same manager owned before and still owns, in the names of the object's version. If the object had no
// owners, the paths that the API server then treats as owned count as well.
func (o *owners) holds() *smdpath.Set {
	if o.kept == nil {
		o.kept = o.held(func(manager) bool { return true })
	}
	return o.kept
}

// containers returns the paths of keeps that count for structs, maps and lists. The result is empty unless versions are converted by name
// only: an apply converts the object to each version that has an entry, and another conversion may drop an empty container with its
// owner. Items do not need this rule, because an item has its keys and is never empty.
func (o *owners) containers() *smdpath.Set {
	if !o.d.Kind.ConvertsByName() {
		return smdpath.NewSet()
	}
	return o.keeps()
}

// keeps returns the paths of holds for managers that do not apply. No later apply of such a manager deletes anything.
func (o *owners) keeps() *smdpath.Set {
	if o.keptByUpdate == nil {
		o.keptByUpdate = o.held(func(who manager) bool { return !o.is.applies(who) })
	}
	return o.keptByUpdate
}

// brings returns the paths that a manager owned and still owns, if it applied before. Its own next apply contains these paths.
func (o *owners) brings(who manager) *smdpath.Set {
	e := o.is.entry(who)
	if e == nil || !o.was.applies(who) {
		return smdpath.NewSet()
	}
	return o.heldIn(e)
}

// bring returns the same for all managers that apply.
func (o *owners) bring() *smdpath.Set {
	if o.keptByApply == nil {
		o.keptByApply = o.held(o.is.applies)
	}
	return o.keptByApply
}

// owned returns all paths that have an owner after the request.
func (o *owners) owned() *smdpath.Set {
	if o.any == nil {
		var sets []*smdpath.Set
		for i := range o.is.entries {
			if !o.d.Stops() {
				sets = append(sets, o.inNames(&o.is.entries[i]))
			}
		}
		o.any = union(sets)
	}
	return o.any
}

func (o *owners) held(by func(manager) bool) *smdpath.Set {
	var sets []*smdpath.Set
	for i := range o.is.entries {
		if e := &o.is.entries[i]; !o.d.Stops() && by(e.manager) {
			sets = append(sets, o.heldIn(e))
		}
	}
	return union(sets)
}

// heldIn returns the paths that one entry of the new object holds.
func (o *owners) heldIn(e *managedEntry) *smdpath.Set {
	was := o.was.entry(e.manager)
	switch {
	case o.readsOtherwise(e), was != nil && o.readsOtherwise(was):
		return smdpath.NewSet()
	case !o.changed[e.manager], len(o.was.entries) == 0 && e.name == beforeFirstApplyOwner && e.operation == operationUpdate:
		return o.inNames(e)
	case was != nil:
		return o.inNames(e).Intersection(o.inNames(was))
	}
	return smdpath.NewSet()
}

// readsOtherwise reports whether a container path of an entry may mean another container in the object's version.
func (o *owners) readsOtherwise(e *managedEntry) bool {
	return e.wroteIn != o.version && !o.d.Kind.ConvertsByName()
}

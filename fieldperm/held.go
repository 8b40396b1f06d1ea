package fieldperm

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// holds returns what is owned before and after by the same manager, in the names of the object's version. What an API server takes for owned
// where there were no owners counts as well.
func (o *owners) holds() *fieldpath.Set {
	if o.kept == nil {
		o.kept = o.held(func(manager) bool { return true })
	}
	return o.kept
}

// containers is keeps, of structs, maps and lists. It is nothing where versions are converted in any other way than by their names: an
// apply goes through each version that has an entry, and a conversion may lose an empty one with its owner. An item is not empty: it has
// its keys.
func (o *owners) containers() *fieldpath.Set {
	if !o.d.kind.ConvertsByName() {
		return fieldpath.NewSet()
	}
	return o.keeps()
}

// keeps is holds, of managers whose applies delete nothing, because there are none.
func (o *owners) keeps() *fieldpath.Set {
	if o.keptByUpdate == nil {
		o.keptByUpdate = o.held(func(who manager) bool { return !o.is.applies(who) })
	}
	return o.keptByUpdate
}

// brings returns what a manager owned and owns still, if it applied before: its own next apply has that.
func (o *owners) brings(who manager) *fieldpath.Set {
	e := o.is.entry(who)
	if e == nil || !o.was.applies(who) {
		return fieldpath.NewSet()
	}
	return o.heldIn(e)
}

// bring is brings, of whoever applies.
func (o *owners) bring() *fieldpath.Set {
	if o.keptByApply == nil {
		o.keptByApply = o.held(o.is.applies)
	}
	return o.keptByApply
}

// owned is what is owned after the request.
func (o *owners) owned() *fieldpath.Set {
	if o.any == nil {
		var sets []*fieldpath.Set
		for i := range o.is.entries {
			if !o.d.stops() {
				sets = append(sets, o.inNames(&o.is.entries[i]))
			}
		}
		o.any = union(sets)
	}
	return o.any
}

func (o *owners) held(by func(manager) bool) *fieldpath.Set {
	var sets []*fieldpath.Set
	for i := range o.is.entries {
		if e := &o.is.entries[i]; !o.d.stops() && by(e.manager) {
			sets = append(sets, o.heldIn(e))
		}
	}
	return union(sets)
}

// heldIn is what one entry of the object after the request holds.
func (o *owners) heldIn(e *managedEntry) *fieldpath.Set {
	was := o.was.entry(e.manager)
	switch {
	case o.readsOtherwise(e), was != nil && o.readsOtherwise(was):
		return fieldpath.NewSet()
	case !o.changed[e.manager], len(o.was.entries) == 0 && e.name == beforeFirstApplyOwner && e.operation == operationUpdate:
		return o.inNames(e)
	case was != nil:
		return o.inNames(e).Intersection(o.inNames(was))
	}
	return fieldpath.NewSet()
}

// readsOtherwise reports whether what is called a container in an entry may be another one here.
func (o *owners) readsOtherwise(e *managedEntry) bool {
	return e.wroteIn != o.version && !o.d.kind.ConvertsByName()
}

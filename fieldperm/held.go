package fieldperm

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// hasItem reports whether an item is owned, which is the last that was resolved or what its own entry or a key is of.
func (o *owners) hasItem(set *fieldpath.Set, item fieldpath.Path) bool {
	last := len(item) - 1
	for i := range item[:last] {
		set = set.WithPrefix(item[i])
	}
	return o.d.hasMember(set, &item[last], o.d.trail.points[last-1].scope.node.List())
}

// hasMember reports whether a member of an object or an item of a list is owned. Of an item that is its own entry and all its keys,
// without which structured-merge-diff does not keep it. What a key's default says nobody has to own.
func (d *differ) hasMember(set *fieldpath.Set, element *fieldpath.PathElement, list *schema.List) bool {
	if !set.Members.Has(*element) {
		return false
	}
	if element.Key == nil {
		return true
	}
	below := set.WithPrefix(*element)
	return !slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
		return !below.Members.Has(fieldpath.PathElement{FieldName: &key.Name}) && !d.isDefault(list, &key)
	})
}

// isDefault reports whether a key has the value that the schema declares for it.
func (d *differ) isDefault(list *schema.List, key *smdvalue.Field) bool {
	if list == nil {
		return false
	}
	keys := list.Keys()
	i := slices.IndexFunc(keys, func(k schema.Key) bool { return k.Name == key.Name })
	if i < 0 || keys[i].Default == nil {
		return false
	}
	fallback, _ := d.keyValue(&keys[i], rawjson.Value{})
	return d.keys.Equal(fallback, fromSMD(key.Value))
}

// holds returns what is owned before and after by the same manager, in the object's version. What an API server takes for owned
// where there were no owners counts as well.
func (o *owners) holds() *fieldpath.Set {
	if o.kept == nil {
		o.kept = o.held(func(manager) bool { return true })
	}
	return o.kept
}

// keeps is holds, of managers whose applies delete nothing, because there are none.
func (o *owners) keeps() *fieldpath.Set {
	if o.keptByUpdate == nil {
		o.keptByUpdate = o.held(func(who manager) bool { return who.operation == operationUpdate })
	}
	return o.keptByUpdate
}

// applies is holds, of managers that apply.
func (o *owners) applies() *fieldpath.Set {
	if o.keptByApply == nil {
		o.keptByApply = o.held(func(who manager) bool { return who.operation == operationApply })
	}
	return o.keptByApply
}

// owned is what is owned after the request, in the object's version.
func (o *owners) owned() *fieldpath.Set {
	if o.any == nil {
		var sets []*fieldpath.Set
		for i := range o.is.entries {
			if e := &o.is.entries[i]; e.wroteIn == o.version && !o.d.stops() {
				sets = append(sets, e.set())
			}
		}
		o.any = union(sets)
	}
	return o.any
}

func (o *owners) held(by func(manager) bool) *fieldpath.Set {
	var sets []*fieldpath.Set
	for i := range o.is.entries {
		e := &o.is.entries[i]
		if o.d.stops() || !by(e.manager) || e.wroteIn != o.version {
			continue
		}
		switch {
		case !o.changed[e.manager], len(o.was.entries) == 0 && e.name == beforeFirstApplyOwner && e.operation == operationUpdate:
			sets = append(sets, e.set())
		case o.was.has(e.manager) && !o.versionChanged(e.manager):
			sets = append(sets, e.set().Intersection(o.was.fields(e.manager)))
		}
	}
	return union(sets)
}

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
	if element.Key == nil || list != nil && !hasParts(list.Item()) {
		return true
	}
	below := set.WithPrefix(*element)
	return !slices.ContainsFunc(*element.Key, func(key smdvalue.Field) bool {
		return !below.Members.Has(fieldpath.PathElement{FieldName: &key.Name}) && !d.isDefault(list, &key)
	})
}

// hasParts reports whether owners name what is in an item: an atomic one has no parts.
func hasParts(item *schema.Node) bool { return item.Map() != nil && !item.Map().Atomic() }

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

// chargeBrokenItems charges the whole object where a manager comes to own an item without its keys, or a key without the item. No API server
// writes that, and it fails on every apply of such a manager, or drops the item.
func (o *owners) chargeBrokenItems(who manager, changed ...*fieldpath.Set) {
	after, e := o.is.fields(who), o.is.entry(who)
	if e == nil {
		return
	}
	their := o.d.kind.In(e.wroteIn)
	for _, set := range changed {
		set.Iterate(func(p fieldpath.Path) {
			item := p
			if isKeyOf(p) {
				item = p[:len(p)-1]
			}
			if !o.d.stops() && isItem(item) && o.isBroken(after, item, their) {
				o.chargeAll()
			}
		})
	}
}

// folded leaves out what an API server does by itself where a schema has made a list or map atomic: its owner comes to own the whole in
// place of the parts (structured-merge-diff: ReconcileFieldSetWithSchema).
func (o *owners) folded(lost, gained, after *fieldpath.Set) (parts, wholes *fieldpath.Set) {
	folds := fieldpath.NewSet()
	var from []fieldpath.Path
	lost.Iterate(func(p fieldpath.Path) {
		if o.d.stops() {
			return
		}
		if n := o.d.atomicAt(p); n < len(p) && after.Has(p[:n]) {
			folds.Insert(slices.Clone(p[:n]))
			from = append(from, slices.Clone(p))
		}
	})
	if len(from) == 0 {
		return lost, gained
	}
	return lost.Difference(fieldpath.NewSet(from...)), gained.Difference(folds)
}

// atomicAt returns how much of a path leads to the first atomic value on it, all if there is none.
func (d *differ) atomicAt(p fieldpath.Path) int {
	d.resolve(p)
	for i := range min(len(p)-1, len(d.trail.points)) {
		node := d.trail.points[i].scope.node
		m, l := node.Map(), node.List()
		if p[i+1].FieldName != nil && m != nil && m.Atomic() || p[i+1].FieldName == nil && l != nil && l.Atomic() {
			return i + 1
		}
	}
	return len(p)
}

// isBroken reports whether one of an item's own entry and its keys is owned without the others. Where keys do not tell items apart an API
// server writes the own entry alone.
func (o *owners) isBroken(set *fieldpath.Set, item fieldpath.Path, kind *schema.Kind) bool {
	last := len(item) - 1
	for i := range item[:last] {
		set = set.WithPrefix(item[i])
	}
	below := set.WithPrefix(item[last])
	if !set.Members.Has(item[last]) {
		return slices.ContainsFunc(*item[last].Key, func(key smdvalue.Field) bool {
			return below.Members.Has(fieldpath.PathElement{FieldName: &key.Name})
		})
	}
	if below.Empty() {
		return false
	}
	var list *schema.List
	if kind != nil {
		list = o.scopeIn(kind, item[:last]).node.List()
	}
	return !o.d.hasMember(set, &item[last], list)
}

// isKeyOf reports whether a path leads to a key of the item before it.
func isKeyOf(p fieldpath.Path) bool {
	n := len(p) - 1
	return n > 0 && p[n].FieldName != nil && p[n-1].Key != nil && hasKey(p[n-1].Key, *p[n].FieldName)
}

// holds returns what is owned before and after by the same manager, in the names of the object's version. What an API server takes for owned
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

// brings is holds, of managers whose next apply brings back what they own.
func (o *owners) brings() *fieldpath.Set {
	if o.keptByApply == nil {
		o.keptByApply = o.held(func(who manager) bool { return who.operation == operationApply })
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
		e := &o.is.entries[i]
		if o.d.stops() || !by(e.manager) {
			continue
		}
		switch {
		case !o.changed[e.manager], len(o.was.entries) == 0 && e.name == beforeFirstApplyOwner && e.operation == operationUpdate:
			sets = append(sets, o.inNames(e))
		case o.was.has(e.manager):
			sets = append(sets, o.inNames(e).Intersection(o.inNames(o.was.entry(e.manager))))
		}
	}
	return union(sets)
}

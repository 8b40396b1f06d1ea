package exact

import (
	"fmt"
	"slices"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// paths returns all paths of a value that a manager can own: leaves, items, their keys, and the own entries of containers, in the notation
// of managedFields.
func (s *subject) paths(v *value, ref smd.TypeRef, at fieldpath.Path, out []fieldpath.Path) []fieldpath.Path {
	atom := s.resolve(ref)
	if len(at) > 0 {
		out = append(out, at)
	}
	switch {
	case v.is(object) && atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic:
		for _, m := range v.members {
			if m.name == "managedFields" {
				continue
			}
			next := append(slices.Clone(at), fieldpath.PathElement{FieldName: ptr(m.name)})
			out = s.paths(m.value, memberType(atom.Map, m.name), next, out)
		}
	case v.is(list) && atom.List != nil && atom.List.ElementRelationship == smd.Associative:
		for _, item := range v.items {
			if e, ok := s.element(atom.List, item); ok {
				out = s.paths(item, atom.List.ElementType, append(slices.Clone(at), e), out)
			}
		}
	}
	return out
}

func (s *subject) element(l *smd.List, item *value) (fieldpath.PathElement, bool) {
	if len(l.Keys) == 0 {
		v, ok := smdScalar(item)
		return fieldpath.PathElement{Value: &v}, ok
	}
	var keys smdvalue.FieldList
	for _, k := range l.Keys {
		property := item.get(k)
		if property == nil {
			property = s.keyDefault(l, k)
		}
		if property == nil {
			continue
		}
		v, ok := smdScalar(property)
		if !ok {
			return fieldpath.PathElement{}, false
		}
		keys = append(keys, smdvalue.Field{Name: k, Value: v})
	}
	keys.Sort()
	return fieldpath.PathElement{Key: &keys}, len(keys) > 0
}

func smdScalar(v *value) (smdvalue.Value, bool) {
	switch {
	case v.is(text), v.is(boolean):
		return smdvalue.NewValueInterface(v.native()), true
	case v.is(number):
		if i, ok := integer(v.text); ok {
			return smdvalue.NewValueInterface(i), true
		}
	}
	return nil, false
}

// owners draws the managedFields of an object.
func (o *objects) owners(v *value) *value {
	all := o.paths(v, o.root, nil, nil)
	out := &value{kind: list}
	for range o.IntN(5) {
		out.items = append(out.items, o.entry(all))
	}
	if o.oneIn(8) {
		// The number is around ten, because an API server keeps ten Update entries.
		for i := range 8 + o.IntN(9) {
			e := o.entry(all)
			e.set("manager", textValue(fmt.Sprintf("u%d", i)))
			e.set("operation", textValue("Update"))
			out.items = append(out.items, e)
		}
	}
	return out
}

func (o *objects) managerName(n int) string {
	if o.oneIn(12) {
		return pick(o.draw, []string{"ancient-changes", "before-first-apply"})
	}
	return fmt.Sprintf("m%d", o.IntN(n))
}

func (o *objects) version() string {
	if o.oneIn(5) {
		return o.kind.Group + pick(o.draw, []string{"/v0", "/v1", "/v2"})
	}
	return o.kind.GroupVersion().String()
}

func (o *objects) entry(all []fieldpath.Path) *value {
	e := objectValue(
		member{"manager", textValue(o.managerName(12))}, member{"operation", textValue(pick(o.draw, []string{"Apply", "Update", "Update"}))},
		member{"apiVersion", textValue(o.version())}, member{"time", textValue(fmt.Sprintf("2026-01-0%dT00:00:00Z", 1+o.IntN(3)))},
		member{"fieldsType", textValue("FieldsV1")}, member{"fieldsV1", o.fields(all)},
	)
	if o.oneIn(6) {
		e.set("subresource", textValue("status"))
	}
	return e
}

// fields draws a set of paths, written as FieldsV1.
func (o *objects) fields(all []fieldpath.Path) *value {
	set := fieldpath.NewSet()
	if len(all) > 0 {
		for range o.IntN(6) {
			p := pick(o.draw, all)
			switch {
			case o.oneIn(12):
				p = append(slices.Clone(p), fieldpath.PathElement{FieldName: ptr(o.name())})
			case o.oneIn(30):
				p = append(slices.Clone(p), fieldpath.PathElement{Index: ptr(o.IntN(3))})
			}
			set.Insert(p)
		}
	}
	return written(set)
}

// editOwners changes managedFields as a request or an attacker might. before and after are the objects.
func (o *objects) editOwners(before, after *value) bool {
	meta := after.get("metadata")
	if !meta.is(object) {
		return false
	}
	entries := meta.get("managedFields")
	all := o.paths(after, o.root, nil, nil)
	if o.oneIn(2) {
		all = append(all, o.paths(before, o.root, nil, nil)...)
	}
	if !entries.is(list) || len(entries.items) == 0 {
		meta.set("managedFields", o.owners(after))
		return true
	}
	i := o.IntN(len(entries.items))
	e := entries.items[i]
	switch o.IntN(17) {
	case 0:
		entries.items = slices.Delete(entries.items, i, i+1)
	case 1, 2:
		entries.items = append(entries.items, o.entry(all))
	case 3, 4, 5, 6:
		o.editFields(e, all)
	case 7:
		e.set("time", textValue(fmt.Sprintf("2026-02-0%dT00:00:00Z", 1+o.IntN(3))))
		if o.oneIn(2) {
			pick(o.draw, entries.items).set("time", textValue("2027-01-01T00:00:00Z"))
		}
	case 8:
		e.set("apiVersion", textValue(o.version()))
	case 9:
		meta.set("managedFields", pick(o.draw, []*value{{kind: list}, {kind: null}, {kind: object}, {kind: list, items: []*value{{kind: object}}}, nil, textValue("")}))
	case 10:
		o.Shuffle(len(entries.items), func(i, j int) { entries.items[i], entries.items[j] = entries.items[j], entries.items[i] })
	case 11:
		garbage, _ := parse([]byte(pick(o.draw, []string{`{"x:y":{}}`, `{"f:a":1}`, `[]`, `{"k:{}":{}}`, `{"f:spec":{".":{},".":{}}}`, `{"v:1e0":{}}`, `{"i:x":{}}`, `null`, `{"f:a":{},"f:a":{}}`, `{"k:{\"a\": 1}":{}}`, `{"":{}}`, `{"v:9007199254740993":{}}`})))
		e.set("fieldsV1", garbage)
	case 12:
		key := pick(o.draw, []string{"operation", "fieldsType", "manager", "subresource", "extra", "apiVersion", "time"})
		e.set(key, pick(o.draw, []*value{{kind: null}, textValue("x"), numberValue("1"), {kind: object}, nil}))
	case 13, 16:
		o.mergeIntoAncient(entries)
	case 14:
		entries.items = append(entries.items, e.clone())
	case 15:
		o.followChange(entries, before, after)
	}
	return true
}

func (o *objects) editFields(e *value, all []fieldpath.Path) {
	set, ok := decodeSet(e.get("fieldsV1"))
	if !ok {
		set = fieldpath.NewSet()
	}
	if o.oneIn(2) && len(all) > 0 {
		set.Insert(pick(o.draw, all))
	} else {
		less := fieldpath.NewSet()
		set.Iterate(func(p fieldpath.Path) {
			if !o.oneIn(3) {
				less.Insert(slices.Clone(p))
			}
		})
		set = less
	}
	e.set("fieldsV1", written(set))
}

// mergeIntoAncient merges the oldest entries as an API server does, and sometimes more of them.
func (o *objects) mergeIntoAncient(entries *value) {
	n, bucket := 1+o.IntN(6), fieldpath.NewSet()
	entries.items = slices.DeleteFunc(slices.Clone(entries.items), func(e *value) bool {
		set, ok := decodeSet(e.get("fieldsV1"))
		if n == 0 || !ok || e.get("operation").canonical() != `"Update"` {
			return false
		}
		bucket, n = bucket.Union(set), n-1
		return true
	})
	e := o.entry(nil)
	e.set("manager", textValue("ancient-changes"))
	e.set("operation", textValue("Update"))
	e.set("fieldsV1", written(bucket))
	entries.items = append(entries.items, e)
	for i := range o.IntN(7) {
		// There are more entries than the server keeps, so that some of them had to go.
		e := o.entry(nil)
		e.set("manager", textValue(fmt.Sprintf("w%d", i)))
		e.set("operation", textValue("Update"))
		entries.items = append(entries.items, e)
	}
}

// followChange makes the requester the owner of the changed fields, and removes them from the other entries, as a server does.
func (o *objects) followChange(entries, before, after *value) {
	was, is := fieldpath.NewSet(o.paths(before, o.root, nil, nil)...), fieldpath.NewSet(o.paths(after, o.root, nil, nil)...)
	changed := was.Difference(is).Union(is.Difference(was))
	for _, e := range entries.items {
		if set, ok := decodeSet(e.get("fieldsV1")); ok && o.oneIn(2) {
			e.set("fieldsV1", written(set.Difference(changed)))
		}
	}
	e := o.entry(nil)
	e.set("fieldsV1", written(changed.Intersection(is)))
	entries.items = append(entries.items, e)
}

package fieldperm

import (
	"encoding/json"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"
)

// resolved is where a path of managedFields leads.
type resolved struct {
	scope scope
	// changed: the value at the path differs between the two objects, or is in one of them only.
	changed bool
	// container: the path is the own entry of an object or a keyed list that is in both.
	container bool
	// keyField: the path is a key property of an item that is in both.
	keyField bool
	// missing: the path leads to nothing in either object.
	missing bool
	// changedAbove: what is nearest above a missing path differs between the objects.
	changedAbove bool
}

// resolve follows a path of managedFields through the schema and both objects. Where the schema
// knows no such place (another version's field) it ends at the last known one.
func (d *differ) resolve(p fieldpath.Path) resolved {
	s, old, new := d.root, d.old, d.new
	keyField, changedAbove := false, false
	for i := range p {
		element := &p[i]
		keyField = false
		if old != nil || new != nil {
			changedAbove = !equal(old, new)
		}
		switch {
		case element.FieldName != nil && s.node.Map() != nil:
			keyField = i > 0 && p[i-1].Key != nil && old != nil && new != nil && hasKey(p[i-1].Key, *element.FieldName)
			d.keyOf(&s, *element.FieldName, &old, &new)
		case element.Key != nil && s.node.List() != nil:
			old, new = findItem(s, old, element.Key), findItem(s, new, element.Key)
			d.itemOf(&s, old, new, keyItem(element.Key))
		case element.Value != nil && s.node.List() != nil:
			want := fromSMD(*element.Value)
			old, new = findMember(old, want), findMember(new, want)
			d.itemOf(&s, old, new, want)
		case element.Index != nil && s.node.List() != nil:
			old, new = at(old, *element.Index), at(new, *element.Index)
			s = d.enter(s, s.node.List().Item(), s.path.then(step{stepKind: stepIndex, index: *element.Index}), s.emitted, old, new, pick(new, old))
		default:
			return resolved{scope: s, missing: true, changedAbove: changedAbove}
		}
	}
	r := resolved{scope: s, changed: !equal(old, new), keyField: keyField, missing: old == nil && new == nil, changedAbove: changedAbove}
	if old == nil || new == nil || old.kind != new.kind {
		return r
	}
	m, l := s.node.Map(), s.node.List()
	r.container = isObject(old) && m != nil && !m.Atomic() || isList(old) && l != nil && !l.Atomic()
	// A container that stays is not changed as such: what changed in it has paths of its own.
	r.changed = r.changed && !r.container
	return r
}

func (d *differ) keyOf(s *scope, name string, old, new **value) {
	*old, *new = (*old).get(name), (*new).get(name)
	above := *s
	d.key(above, name, *old, *new, func(c scope, _, _ *value) { *s = c })
}

func (d *differ) itemOf(s *scope, old, new, known *value) {
	v := pick(pick(new, old), known)
	path, emitted := itemStep(*s, v)
	above := *s
	d.child(above, above.node.List().Item(), path, emitted, old, new, func(c scope, _, _ *value) { *s = c })
	if old == nil && new == nil && v.isScalar() {
		*s = d.enter(above, above.node.List().Item(), path, emitted, nil, nil, v)
	}
}

func pick(first, second *value) *value {
	if first != nil {
		return first
	}
	return second
}

func hasKey(keys *smdvalue.FieldList, name string) bool {
	for _, k := range *keys {
		if k.Name == name {
			return true
		}
	}
	return false
}

// keyItem makes an item of nothing but its keys, to stand for one that is in neither object.
func keyItem(keys *smdvalue.FieldList) *value {
	v := &value{kind: kindObject, index: map[string]*value{}}
	for _, k := range *keys {
		property := fromSMD(k.Value)
		v.index[k.Name] = property
		v.members = append(v.members, member{k.Name, property})
	}
	return v
}

func findItem(s scope, list *value, keys *smdvalue.FieldList) *value {
	want := keyItem(keys)
	for _, item := range listItems(list) {
		same := item.kind == kindObject
		for _, k := range s.node.List().Keys() {
			same = same && equal(keyValue(k, item), keyValue(k, want))
		}
		if same && len(want.members) > 0 {
			return item
		}
	}
	return nil
}

func findMember(list, want *value) *value {
	for _, item := range listItems(list) {
		if equal(item, want) {
			return item
		}
	}
	return nil
}

func at(list *value, i int) *value {
	if items := listItems(list); i >= 0 && i < len(items) {
		return items[i]
	}
	return nil
}

// fromSMD converts a key's value; what JSON cannot express becomes null, which equals no key.
func fromSMD(v smdvalue.Value) *value {
	switch {
	case v.IsString():
		return &value{kind: kindString, text: v.AsString()}
	case v.IsInt():
		return &value{kind: kindNumber, text: normalNumber(strconv.FormatInt(v.AsInt(), 10))}
	case v.IsBool():
		return &value{kind: kindBool, text: strconv.FormatBool(v.AsBool())}
	}
	raw, err := json.Marshal(v.Unstructured())
	if err != nil {
		return &value{kind: kindNull}
	}
	out, err := decodeAny(raw)
	if err != nil {
		return &value{kind: kindNull}
	}
	return out
}

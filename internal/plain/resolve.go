package plain

import (
	"encoding/json"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/schema"
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
	keyField := false
	// What is nearest above the path is compared only if the path leads nowhere: it may be large.
	var oldAbove, newAbove *value
	above := d.root.node
	for i := range p {
		element := &p[i]
		keyField = false
		if old != nil || new != nil {
			oldAbove, newAbove, above = old, new, s.node
		}
		switch {
		case element.FieldName != nil && s.node.Map() != nil:
			keyField = i > 0 && p[i-1].Key != nil && old != nil && new != nil && hasKey(p[i-1].Key, *element.FieldName)
			d.keyOf(&s, *element.FieldName, &old, &new)
		case element.Key != nil && s.node.List() != nil:
			want, l := keyItem(element.Key), s.node.List()
			old, new = d.find(l, old, want), d.find(l, new, want)
			d.itemOf(&s, old, new, want)
		case element.Value != nil && s.node.List() != nil:
			want, l := fromSMD(*element.Value), s.node.List()
			old, new = d.find(l, old, want), d.find(l, new, want)
			d.itemOf(&s, old, new, want)
		case element.Index != nil && s.node.List() != nil:
			old, new = at(old, *element.Index), at(new, *element.Index)
			_, emitted := itemStep(s, pick(new, old))
			s = d.enter(s, s.node.List().Item(), s.path.Index(*element.Index), emitted, old, new, pick(new, old))
		default:
			return resolved{scope: s, missing: true, changedAbove: changedValue(above, oldAbove, newAbove)}
		}
	}
	if old == nil && new == nil {
		return resolved{scope: s, keyField: keyField, missing: true, changedAbove: changedValue(above, oldAbove, newAbove)}
	}
	m, l := s.node.Map(), s.node.List()
	if isObject(old) && isObject(new) && m != nil && !m.Atomic() && len(old.members)+len(new.members) > 0 || isList(old) && isList(new) && l != nil && !l.Atomic() && len(old.items)+len(new.items) > 0 {
		// A container that stays is not changed as such: what changed in it has paths of its own.
		return resolved{scope: s, container: true}
	}
	return resolved{scope: s, changed: !equal(old, new), keyField: keyField}
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

// find returns the item of a keyed list that has the keys of another, the first of several; nil if
// there is none. Lists are indexed once, because owners name many items.
func (d *differ) find(l *schema.List, list, like *value) *value {
	if !isList(list) {
		return nil
	}
	index := d.indices[list]
	if index == nil {
		index = make(map[string]*value, len(list.items))
		for _, item := range list.items {
			if key, ok := identify(l.Keys(), item); ok && index[key] == nil {
				index[key] = item
			}
		}
		if d.indices == nil {
			d.indices = map[*value]map[string]*value{}
		}
		d.indices[list] = index
	}
	key, ok := identify(l.Keys(), like)
	if !ok {
		return nil
	}
	return index[key]
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
		return newScalar(kindString, v.AsString())
	case v.IsInt():
		return newScalar(kindNumber, normalNumber(strconv.FormatInt(v.AsInt(), 10)))
	case v.IsBool():
		return newScalar(kindBool, strconv.FormatBool(v.AsBool()))
	}
	raw, err := json.Marshal(v.Unstructured())
	if err != nil {
		return newScalar(kindNull, "")
	}
	out, err := decodeAny(raw)
	if err != nil {
		return newScalar(kindNull, "")
	}
	return out
}

// changedValue reports whether something differs that is not passed over because of its role: around
// managedFields something always does.
func changedValue(n *schema.Node, old, new *value) bool {
	if equal(old, new) || n.Role() == schema.RoleServerWritten || n.Role() == schema.RoleOwnership {
		return false
	}
	if n.Map() == nil || !isObject(old) || !isObject(new) || old.duplicate || new.duplicate {
		return true
	}
	for _, side := range []*value{old, new} {
		for _, m := range side.members {
			if changedValue(n.Map().Child(m.name), old.get(m.name), new.get(m.name)) {
				return true
			}
		}
	}
	return false
}

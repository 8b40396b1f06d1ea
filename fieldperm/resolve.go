package fieldperm

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/internal/rawjson"
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
	var oldAbove, newAbove rawjson.Value
	above := d.root.node
	for i := range p {
		element := &p[i]
		keyField = false
		if !old.IsAbsent() || !new.IsAbsent() {
			oldAbove, newAbove, above = old, new, s.node
		}
		list := s.node.List()
		switch {
		case element.FieldName != nil && s.node.Map() != nil:
			keyField = i > 0 && p[i-1].Key != nil && !old.IsAbsent() && !new.IsAbsent() && hasKey(p[i-1].Key, *element.FieldName)
			name := *element.FieldName
			old, new = d.index.member(old, name), d.index.member(new, name)
			d.key(s, []byte(name), old, new, into(&s))
		case element.Key != nil && list != nil:
			like := keyItem(element.Key)
			old, new = d.find(list, old, like), d.find(list, new, like)
			d.itemOf(&s, old, new, like)
		case element.Value != nil && list != nil:
			like := fromSMD(*element.Value)
			old, new = d.find(list, old, like), d.find(list, new, like)
			d.itemOf(&s, old, new, like)
		case element.Index != nil && list != nil:
			old, new = d.index.item(old, *element.Index), d.index.item(new, *element.Index)
			_, emitted := d.itemStep(s, either(new, old))
			s = d.enter(s, list.Item(), s.path.Index(*element.Index), emitted, old, new, either(new, old))
		default:
			return resolved{scope: s, missing: true, changedAbove: d.changedValue(above, oldAbove, newAbove)}
		}
	}
	if old.IsAbsent() && new.IsAbsent() {
		return resolved{scope: s, keyField: keyField, missing: true, changedAbove: d.changedValue(above, oldAbove, newAbove)}
	}
	m, l := s.node.Map(), s.node.List()
	if !old.IsEmpty() || !new.IsEmpty() {
		if old.IsObject() && new.IsObject() && m != nil && !m.Atomic() || old.IsList() && new.IsList() && l != nil && !l.Atomic() {
			// A container that stays is not changed as such: what changed in it has paths of its own.
			return resolved{scope: s, container: true}
		}
	}
	return resolved{scope: s, changed: !d.same.Equal(old, new), keyField: keyField}
}

// into is a visitor that takes the scope and no more.
func into(s *scope) visitor {
	return func(_ *differ, c scope, _, _ rawjson.Value) { *s = c }
}

func (d *differ) itemOf(s *scope, old, new, known rawjson.Value) {
	above, item := *s, s.node.List().Item()
	path, emitted := d.itemStep(above, either(either(new, old), known))
	if old.IsAbsent() && new.IsAbsent() && known.IsScalar() {
		*s = d.enter(above, item, path, emitted, old, new, known)
		return
	}
	d.child(above, item, path, emitted, old, new, into(s))
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
func keyItem(keys *smdvalue.FieldList) rawjson.Value {
	item := make(map[string]any, len(*keys))
	for _, k := range *keys {
		item[k.Name] = k.Value.Unstructured()
	}
	return encoded(item)
}

// fromSMD converts a key's value; what JSON cannot express becomes null, which equals no key.
func fromSMD(v smdvalue.Value) rawjson.Value { return encoded(v.Unstructured()) }

// encoded returns a value whose document is not released: paths refer to it.
func encoded(v any) rawjson.Value {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null")
	}
	doc, err := rawjson.Scan(raw)
	if err != nil {
		return rawjson.Value{}
	}
	return doc.Root()
}

// find returns the item of a keyed list that has the keys of another, the first of several; absent if
// there is none.
func (d *differ) find(list *schema.List, in, like rawjson.Value) rawjson.Value {
	if !in.IsList() {
		return rawjson.Value{}
	}
	want, ok := d.identify(list.Keys(), like)
	if !ok {
		return rawjson.Value{}
	}
	index := d.index.keyed[in]
	if index == nil {
		index = map[uint64][]rawjson.Value{}
		for i := in.Items(); i.Next(); {
			if id, ok := d.identify(list.Keys(), i.Value()); ok {
				index[id.sum()] = append(index[id.sum()], i.Value())
			}
		}
		if d.index.keyed == nil {
			d.index.keyed = map[rawjson.Value]map[uint64][]rawjson.Value{}
		}
		d.index.keyed[in] = index
	}
	for _, item := range index[want.sum()] {
		if id, _ := d.identify(list.Keys(), item); d.sameIdentity(&id, &want) {
			return item
		}
	}
	return rawjson.Value{}
}

// index has what is in lists and objects that paths of managedFields lead through, because owners name
// many items and members.
type index struct {
	keyed   map[rawjson.Value]map[uint64][]rawjson.Value
	members map[rawjson.Value]map[string]rawjson.Value
	items   map[rawjson.Value][]rawjson.Value
	above   map[[2]rawjson.Value]bool
}

// member is Get.
func (x *index) member(v rawjson.Value, name string) rawjson.Value {
	if !v.IsObject() {
		return rawjson.Value{}
	}
	byName, known := x.members[v]
	if !known {
		if x.members == nil {
			x.members = map[rawjson.Value]map[string]rawjson.Value{}
		}
		byName = map[string]rawjson.Value{}
		for m := v.Members(); m.Next(); {
			byName[m.Name().String()] = m.Value()
		}
		x.members[v] = byName
	}
	return byName[name]
}

// item returns the item at a position, absent if there is none.
func (x *index) item(v rawjson.Value, i int) rawjson.Value {
	if !v.IsList() || i < 0 {
		return rawjson.Value{}
	}
	items, known := x.items[v]
	if !known {
		if x.items == nil {
			x.items = map[rawjson.Value][]rawjson.Value{}
		}
		for i := v.Items(); i.Next(); {
			items = append(items, i.Value())
		}
		x.items[v] = items
	}
	if i >= len(items) {
		return rawjson.Value{}
	}
	return items[i]
}

// changedValue reports whether something differs that is not passed over because of its role: around
// managedFields something always does. Many paths ask it of one value.
func (d *differ) changedValue(n *schema.Node, old, new rawjson.Value) bool {
	both := [2]rawjson.Value{old, new}
	out, known := d.index.above[both]
	if !known {
		if d.index.above == nil {
			d.index.above = map[[2]rawjson.Value]bool{}
		}
		out = d.differs(n, old, new)
		d.index.above[both] = out
	}
	return out
}

func (d *differ) differs(n *schema.Node, old, new rawjson.Value) bool {
	if d.same.Equal(old, new) || n.Role() == schema.RoleServerWritten || n.Role() == schema.RoleOwnership {
		return false
	}
	if n.Map() == nil || !old.IsObject() || !new.IsObject() || old.Ambiguous() || new.Ambiguous() {
		return true
	}
	begin := d.changes(old, new)
	defer func() { d.changed = d.changed[:begin] }()
	for i := begin; i < len(d.changed); i++ {
		c := d.changed[i]
		d.same.Recall(c.run)
		if child, _ := n.Map().Lookup(c.name); d.differs(child, c.old, c.new) {
			return true
		}
	}
	return false
}

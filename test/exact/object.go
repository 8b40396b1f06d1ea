package exact

import (
	"fmt"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// objects draws objects of a kind.
type objects struct {
	*draw
	*subject
	// left limits the number of further values of one object.
	left int
}

const maxValues = 90

// object draws an object with a type, a name and mostly a spec.
func (o *objects) object() *value {
	o.left = maxValues
	v := &value{kind: object}
	root := o.resolve(o.root).Map
	if !o.oneIn(20) {
		v.set("apiVersion", textValue(o.kind.GroupVersion().String()))
		v.set("kind", textValue(o.kind.Kind))
	}
	if !o.oneIn(20) {
		v.set("metadata", o.metadata())
	}
	for _, f := range fieldsOf(root) {
		switch f.Name {
		case "apiVersion", "kind", "metadata":
		default:
			if !o.oneIn(4) {
				v.set(f.Name, o.value(f.Type, 0))
			}
		}
	}
	if o.oneIn(15) {
		v.set(o.name(), o.value(root.ElementType, 2))
	}
	o.shuffle(v)
	return v
}

func (o *objects) metadata() *value {
	meta := memberType(o.resolve(o.root).Map, "metadata")
	m := o.resolve(meta).Map
	v := objectValue(member{"name", textValue(pick(o.draw, []string{"x", "y"}))})
	if m == nil {
		return v
	}
	for _, f := range fieldsOf(m) {
		switch {
		case f.Name == "name" || f.Name == "managedFields" && !o.oneIn(50):
		case o.oneIn(5):
			v.set(f.Name, o.value(f.Type, 2))
		}
	}
	if o.oneIn(30) {
		return o.value(meta, 2)
	}
	return v
}

func (o *objects) shuffle(v *value) {
	if o.oneIn(3) {
		o.Shuffle(len(v.members), func(i, j int) { v.members[i], v.members[j] = v.members[j], v.members[i] })
	}
}

// value draws a value that fits the type, or nearly fits it: any scalar replaces any other.
func (o *objects) value(ref smd.TypeRef, depth int) *value {
	o.left--
	atom := o.resolve(ref)
	if o.oneIn(30) {
		return &value{kind: null}
	}
	var forms []kind
	if atom.Scalar != nil {
		forms = append(forms, text)
	}
	if atom.Map != nil {
		forms = append(forms, object)
	}
	if atom.List != nil {
		forms = append(forms, list)
	}
	switch pick(o.draw, forms) {
	case object:
		return o.members(atom.Map, depth)
	case list:
		return o.items(atom.List, depth)
	default:
		return o.scalarOf(*atom.Scalar)
	}
}

// many is mostly zero, and sometimes more than the limit for a comparison of pairs.
func (o *objects) many() int {
	if o.left < maxValues/4 || !o.oneIn(50) {
		return 0
	}
	o.left = min(o.left, maxValues/4)
	return 4 + o.IntN(80)
}

func (o *objects) scalarOf(s smd.Scalar) *value {
	if o.oneIn(40) {
		return o.scalar()
	}
	switch s {
	case smd.Numeric:
		return numberValue(o.number())
	case smd.Boolean:
		return boolValue(o.oneIn(2))
	case smd.String:
		return textValue(o.text())
	default:
		return o.scalar()
	}
}

func (o *objects) members(m *smd.Map, depth int) *value {
	v := &value{kind: object}
	if o.left <= 0 || o.oneIn(15) {
		return v
	}
	if fields := fieldsOf(m); len(fields) > 0 {
		n := len(fields)
		for range o.IntN(min(n, max(5-depth/2, 2))) + 1 {
			if f := fields[o.IntN(n)]; o.left > 0 {
				v.set(f.Name, o.value(f.Type, depth+1))
			}
		}
	}
	if open := m.ElementType.NamedType != nil || m.ElementType.Inlined != (smd.Atom{}) || len(m.Fields) == 0; open && depth < 9 {
		for range o.IntN(4) {
			v.set(o.name(), o.value(m.ElementType, depth+2))
		}
		for i := range o.many() {
			v.set(fmt.Sprintf("k%d", i*7%101), o.value(m.ElementType, 12))
		}
	} else if o.oneIn(20) {
		v.set(o.name(), o.value(smd.TypeRef{}, depth+3))
	}
	o.shuffle(v)
	return v
}

func (o *objects) items(l *smd.List, depth int) *value {
	v := &value{kind: list}
	if o.left <= 0 || depth > 12 {
		return v
	}
	n, keys, set := o.IntN(4), keysOf(l), l.ElementRelationship == smd.Associative && len(l.Keys) == 0
	if len(keys) > 0 || set {
		n = o.IntN(5)
	}
	seen, many := map[string]bool{}, o.many()
	for i := range n + many {
		item := o.item(l, depth)
		if len(keys) > 0 && item.is(object) {
			o.giveKeys(l, item)
			if i >= n {
				item.set(keys[0], textValue(fmt.Sprintf("k%d", i*7%101)))
			}
		} else if set && i >= n {
			item = textValue(fmt.Sprintf("k%d", i))
		}
		// Duplicates are rare in practice, and with many duplicates nothing else would be tested.
		id := item.canonical()
		if len(keys) > 0 {
			id = ""
			for _, k := range keys {
				id += item.get(k).canonical() + ";"
			}
		}
		if (set || len(keys) > 0) && seen[id] && !o.oneIn(20) {
			continue
		}
		seen[id] = true
		v.items = append(v.items, item)
	}
	return v
}

// item draws one item. It is nearly always an object if the list has keys.
func (o *objects) item(l *smd.List, depth int) *value {
	if atom := o.resolve(l.ElementType); len(keysOf(l)) > 0 && atom.Map != nil && !o.oneIn(100) {
		o.left--
		return o.members(atom.Map, depth+1)
	}
	v := o.value(l.ElementType, depth+1)
	for l.ElementRelationship == smd.Associative && v.is(null) && !o.oneIn(10) {
		v = o.value(l.ElementType, depth+1)
	}
	return v
}

func (o *objects) giveKeys(l *smd.List, item *value) {
	fields := o.resolve(l.ElementType).Map
	for _, k := range l.Keys {
		kind := o.resolve(memberType(fields, k)).Scalar
		switch {
		case o.oneIn(40), o.keyDefault(l, k) != nil && o.oneIn(3):
			item.unset(k)
		case kind != nil && *kind == smd.Numeric:
			item.set(k, numberValue(pick(o.draw, []string{"80", "443", "1", "8e1", "2", "9007199254740993", "9007199254740992", "1.5"})))
		case kind != nil && *kind == smd.Boolean:
			item.set(k, boolValue(o.oneIn(2)))
		default:
			item.set(k, textValue(pick(o.draw, []string{"a", "b", "c", "d", "TCP", "UDP", "é", "a\"b", ""})))
		}
	}
}

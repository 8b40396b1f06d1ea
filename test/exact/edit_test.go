package exact

import (
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// spot is a value in its container, with its type.
type spot struct {
	up *value
	at int
	// list is the type of the list that the spot is an item of.
	list *smd.List
	ref  smd.TypeRef
	v    *value
}

func (s *spot) put(v *value) {
	if s.up.is(object) {
		s.up.members[s.at].value = v
		return
	}
	s.up.items[s.at] = v
}

func (s *spot) remove() {
	if s.up.is(object) {
		s.up.members = slices.Delete(s.up.members, s.at, s.at+1)
		return
	}
	s.up.items = slices.Delete(s.up.items, s.at, s.at+1)
}

// spots returns every value below a value, except managedFields, which has edits of its own.
func (s *subject) spots(v *value, ref smd.TypeRef, out []spot) []spot {
	atom := s.resolve(ref)
	if v.is(object) {
		m := atom.Map
		if m == nil {
			m = anything().Map
		}
		for i, below := range v.members {
			if below.name == "managedFields" {
				continue
			}
			t := memberType(m, below.name)
			out = append(out, spot{up: v, at: i, ref: t, v: below.value})
			out = s.spots(below.value, t, out)
		}
	}
	if v.is(list) {
		l := atom.List
		if l == nil {
			l = anything().List
		}
		for i, item := range v.items {
			out = append(out, spot{up: v, at: i, list: l, ref: l.ElementType, v: item})
			out = s.spots(item, l.ElementType, out)
		}
	}
	return out
}

// edit is one random change. It reports false if it found no place for the change.
type edit struct {
	name string
	do   func(o *objects, all []spot, s spot) bool
}

// edits are drawn by weight: an edit that is listed twice is drawn twice as often.
func edits() []edit {
	return []edit{
		{"set", set}, {"set", set}, {"set", set}, {"tweak", tweak}, {"tweak", tweak},
		{"unset", unset}, {"unset", unset}, {"add", add}, {"add", add}, {"add", add},
		{"move", move}, {"reorder", reorder}, {"reorder", reorder}, {"rename key", renameKey}, {"rekey item", rekey}, {"rekey item", rekey},
		{"null", toNull}, {"empty", empty}, {"type change", typeChange}, {"respell number", respellNumber},
		{"repeat name", repeatName}, {"repeat item", repeatItem}, {"copy", copyFrom}, {"change many", changeMany},
	}
}

func set(o *objects, _ []spot, s spot) bool {
	if s.list != nil {
		s.put(o.item(s.list, 4))
		return true
	}
	s.put(o.value(s.ref, 4))
	return true
}

func tweak(o *objects, all []spot, s spot) bool {
	for range 5 {
		if s.v.isScalar() {
			break
		}
		s = pick(o.draw, all)
	}
	switch {
	case s.v.is(boolean):
		s.put(boolValue(s.v.text == "false"))
	case s.v.is(number):
		s.put(numberValue(o.number()))
	case s.v.is(text):
		s.put(textValue(pick(o.draw, []string{s.v.text + "x", strings.ToUpper(s.v.text), strings.TrimSuffix(s.v.text, "x"), o.text()})))
	default:
		return false
	}
	return true
}

func unset(_ *objects, _ []spot, s spot) bool {
	s.remove()
	return true
}

// add puts a member or an item into a container.
func add(o *objects, all []spot, s spot) bool {
	for range 5 {
		if s.v.is(object) || s.v.is(list) {
			break
		}
		s = pick(o.draw, all)
	}
	atom := o.resolve(s.ref)
	switch {
	case s.v.is(object) && atom.Map != nil:
		name, fields := o.name(), fieldsOf(atom.Map)
		if len(fields) > 0 && !o.oneIn(6) {
			name = pick(o.draw, fields).Name
		}
		if s.v.get(name) != nil {
			return false
		}
		s.v.members = slices.Insert(s.v.members, o.IntN(len(s.v.members)+1), member{name, o.value(memberType(atom.Map, name), 4)})
	case s.v.is(list) && atom.List != nil:
		item := o.item(atom.List, 4)
		if item.is(object) && len(keysOf(atom.List)) > 0 {
			o.giveKeys(atom.List, item)
		}
		s.v.items = slices.Insert(s.v.items, o.IntN(len(s.v.items)+1), item)
	default:
		return false
	}
	return true
}

// move puts an item or a member at another position in its container.
func move(o *objects, all []spot, s spot) bool {
	for range 8 {
		if s.up.is(list) && len(s.up.items) > 1 {
			break
		}
		s = pick(o.draw, all)
	}
	if s.up.is(list) {
		to := o.IntN(len(s.up.items))
		s.remove()
		s.up.items = slices.Insert(s.up.items, to, s.v)
		return true
	}
	m, to := s.up.members[s.at], o.IntN(len(s.up.members))
	s.remove()
	s.up.members = slices.Insert(s.up.members, to, m)
	return true
}

// reorder moves an item of a list whose items have keys (D3).
func reorder(o *objects, all []spot, s spot) bool {
	start := o.IntN(len(all))
	for i := range all {
		s = all[(start+i)%len(all)]
		if s.list != nil && s.list.ElementRelationship == smd.Associative && len(s.up.items) > 1 {
			return move(o, []spot{s}, s)
		}
	}
	return false
}

func renameKey(o *objects, all []spot, s spot) bool {
	for range 5 {
		if s.up.is(object) {
			break
		}
		s = pick(o.draw, all)
	}
	if !s.up.is(object) {
		return false
	}
	m := &s.up.members[s.at]
	m.name = pick(o.draw, []string{o.name(), o.name(), strings.ToUpper(m.name), m.name + "x", strings.TrimSuffix(m.name, "s")})
	return true
}

// rekey changes the key of an item.
func rekey(o *objects, all []spot, s spot) bool {
	start := o.IntN(len(all))
	for i := range all {
		s = all[(start+i)%len(all)]
		if s.list != nil && s.list.ElementRelationship == smd.Associative {
			break
		}
	}
	if s.list == nil || s.list.ElementRelationship != smd.Associative {
		return false
	}
	if len(s.list.Keys) == 0 {
		s.put(o.value(s.ref, 9))
		return true
	}
	if !s.v.is(object) || o.resolve(s.ref).Map == nil {
		return false
	}
	switch key := pick(o.draw, s.list.Keys); o.IntN(8) {
	case 0:
		s.v.set(key, pick(o.draw, []*value{{kind: null}, {kind: list}, {kind: object}, numberValue("1"), textValue("1")}))
	case 1:
		s.v.unset(key)
	case 2:
		if d := o.keyDefault(s.list, key); d != nil {
			s.v.set(key, d)
			break
		}
		fallthrough
	default:
		o.giveKeys(s.list, s.v)
	}
	return true
}

func toNull(_ *objects, _ []spot, s spot) bool {
	s.put(&value{kind: null})
	return true
}

func empty(o *objects, all []spot, s spot) bool {
	for range 5 {
		if s.v.is(object) || s.v.is(list) {
			break
		}
		s = pick(o.draw, all)
	}
	switch atom := o.resolve(s.ref); {
	case s.v.is(object) && !o.oneIn(5), s.v.is(list) && atom.Map != nil, !s.v.is(list) && atom.Map != nil:
		s.put(&value{kind: object})
	case s.v.is(list), atom.List != nil:
		s.put(&value{kind: list})
	default:
		s.put(textValue(""))
	}
	return true
}

// typeChange changes the type of a value. In some cases the new type fits the node. In the other cases every Diff must refuse the object.
func typeChange(o *objects, all []spot, s spot) bool {
	if o.oneIn(2) {
		// Use a place where the node allows more than one form.
		for range 8 {
			if atom := o.resolve(s.ref); atom.Scalar != nil && atom.Map != nil {
				break
			}
			s = pick(o.draw, all)
		}
	}
	s.put(o.value(smd.TypeRef{}, 6))
	return true
}

func respellNumber(o *objects, all []spot, s spot) bool {
	start := o.IntN(len(all))
	for i := range all {
		s = all[(start+i)%len(all)]
		if s.v.is(number) {
			s.put(numberValue(o.respell(s.v.text)))
			return true
		}
	}
	return false
}

// repeatName gives the name of a member to a second member.
func repeatName(o *objects, all []spot, s spot) bool {
	for range 5 {
		if s.up.is(object) {
			break
		}
		s = pick(o.draw, all)
	}
	if big := largest(o, all); o.oneIn(3) && big.v.is(object) && len(big.v.members) > 0 {
		at := o.IntN(len(big.v.members))
		s = spot{up: big.v, at: at, v: big.v.members[at].value}
	}
	if !s.up.is(object) {
		return false
	}
	m := member{s.up.members[s.at].name, s.v.clone()}
	if o.oneIn(2) {
		m.value = o.value(s.ref, 6)
	}
	s.up.members = slices.Insert(s.up.members, o.IntN(len(s.up.members)+1), m)
	return true
}

func repeatItem(o *objects, all []spot, s spot) bool {
	start := o.IntN(len(all))
	for i := range all {
		if s = all[(start+i)%len(all)]; s.list != nil {
			break
		}
	}
	if s.list == nil {
		return false
	}
	twin := s.v.clone()
	if twin.is(object) && len(twin.members) > 0 && o.oneIn(2) {
		m := &twin.members[o.IntN(len(twin.members))]
		m.value = textValue(o.text())
	}
	s.up.items = slices.Insert(s.up.items, o.IntN(len(s.up.items)+1), twin)
	return true
}

// changeMany changes every second value of the largest container that it finds.
func changeMany(o *objects, all []spot, s spot) bool {
	s = largest(o, all)
	places := o.spots(s.v, s.ref, nil)
	for _, below := range places {
		if below.v.isScalar() && o.oneIn(2) {
			tweak(o, []spot{below}, below)
		}
	}
	return len(places) > 0
}

// largest returns one of the places with the most values below them.
func largest(o *objects, all []spot) spot {
	s := pick(o.draw, all)
	for range 10 {
		if other := pick(o.draw, all); len(other.v.items)+len(other.v.members) > len(s.v.items)+len(s.v.members) {
			s = other
		}
	}
	return s
}

// copyFrom replaces a value by a value from another place in the object.
func copyFrom(o *objects, all []spot, s spot) bool {
	from := pick(o.draw, all)
	if from.v == s.up || from.v == s.v {
		return false
	}
	s.put(from.v.clone())
	return true
}

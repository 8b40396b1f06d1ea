package exact

import (
	"context"
	"slices"
	"strconv"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// place is a place in both objects, with its verbs and its barrier.
type place struct {
	ref  smd.TypeRef
	atom smd.Atom
	node *schema.Node
	path string
	// id is unique. The path is not, if the name of a field contains a dot.
	id string
	// top is the name of the top-level field, "" for the object.
	top      string
	old, new *value
	chain    []verbs.Verb
	barrier  int
	// beside are barriers beside the chain.
	beside []beside
	// emitted are the parameters that the path has emitted. For each name the nearest one counts.
	emitted map[string]string
	// emitting is the same place with another value of the node's own parameter.
	emitting func(*value) place
}

// beside is a barrier that its own verbs pass, and those of the chain from a length on.
type beside struct {
	verbs []verbs.Verb
	from  int
}

// barred reports whether any barrier holds for the place.
func (p place) barred() bool { return p.barrier >= 0 || len(p.beside) > 0 }

func (p place) shown() string {
	if p.path == "" {
		return "."
	}
	return p.path
}

// enter adds the entries of a node to the data of the place above it.
func (o *oracle) enter(up place, ref smd.TypeRef, node *schema.Node, step string, emitted map[string]string, old, new *value) place {
	return o.enterEmitting(up, ref, node, step, emitted, old, new, scalarOf(new, old))
}

func (o *oracle) enterEmitting(up place, ref smd.TypeRef, node *schema.Node, step string, emitted map[string]string, old, new, own *value) place {
	p := place{ref: ref, atom: o.resolve(ref), node: node, path: up.path + step, id: up.id + strconv.Quote(step), top: up.top, old: old, new: new, barrier: up.barrier, beside: up.beside, emitted: emitted}
	p.emitting = func(own *value) place { return o.enterEmitting(up, ref, node, step, emitted, old, new, own) }
	p.chain = append(p.chain, up.chain...)
	if own != nil {
		p.emitted = with(p.emitted, node.Emits(), own.plainText())
	}
	var others []beside
	for _, permission := range node.Permissions() {
		barred := permission.MayBar() && (!permission.Conditional() || o.owning || holds(permission, old, new))
		said := []verbs.Verb{permission.Base()}
		if one, ok := permission.Parameterized(func(name string) (string, bool) { v, ok := p.emitted[name]; return v, ok }); ok {
			said = append(said, one)
		}
		if permission.BarsOnly() {
			if i := slices.IndexFunc(said, func(v verbs.Verb) bool { return barred || o.uncovered.Has(v) }); i >= 0 {
				others = append(others, beside{verbs: said[i:]})
			}
			continue
		}
		for i, verb := range said {
			if i == 0 && barred || o.uncovered.Has(verb) {
				p.barrier = len(p.chain)
			}
			p.chain = append(p.chain, verb)
		}
	}
	for _, b := range others {
		p.beside = append(slices.Clip(p.beside), beside{b.verbs, len(p.chain)})
	}
	return p
}

// holds reports whether a conditional barrier holds for a change of a scalar. For a null it always does (C2).
func holds(permission *schema.Permission, old, new *value) bool {
	return new.is(null) || permission.Bars(context.Background(), old.native(), new.native())
}

func scalarOf(first, second *value) *value {
	if first.isScalar() {
		return first
	}
	if second.isScalar() {
		return second
	}
	return nil
}

func with(emitted map[string]string, name, value string) map[string]string {
	if name == "" {
		return emitted
	}
	out := map[string]string{name: value}
	for k, v := range emitted {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// member is the place below a key, with the given values.
func (o *oracle) member(p place, name string, old, new *value) place {
	m := p.atom.Map
	if m == nil {
		m = anything().Map
	}
	emitted, step := p.emitted, "["+strconv.Quote(name)+"]"
	if _, field := m.FindField(name); field {
		step = "." + name
	} else {
		emitted = with(emitted, p.node.Emits(), name)
	}
	if p.id == quotedRoot {
		p.top = name
	}
	return o.enter(p, memberType(m, name), p.node.Map().Child(name), step, emitted, old, new)
}

// quotedRoot is the id of the object.
var quotedRoot = strconv.Quote("")

// item is the place of an item that has the same key as like.
func (o *oracle) item(p place, like, old, new *value) place {
	l := p.atom.List
	return o.enter(p, l.ElementType, p.node.List().Item(), "["+o.name(l, like)+"]", o.emittedByKeys(p, like), old, new)
}

// name is the step to an item by its keys.
func (o *oracle) name(l *smd.List, like *value) string {
	keys := keysOf(l)
	var parts []string
	for _, k := range keys {
		parts = append(parts, k+"="+quoted(o.keyValue(l, k, like)))
	}
	if len(keys) == 0 {
		return "=" + quoted(like)
	}
	return strings.Join(parts, ",")
}

// at is the place of an item that is compared by its position. Its path has its keys, if it has any.
func (o *oracle) at(p place, i int, old, new *value) place {
	like := new
	if like == nil {
		like = old
	}
	step := strconv.Itoa(i)
	if _, ok := o.identity(p.atom.List, like); ok && p.atom.List.ElementRelationship == "associative" {
		step = o.name(p.atom.List, like)
	}
	return o.enter(p, p.atom.List.ElementType, p.node.List().Item(), "["+step+"]", o.emittedByKeys(p, like), old, new)
}

// emittedByKeys returns the parameters that the keys of an item emit. A key that is not a scalar hides a parameter of the same name from
// further out.
func (o *oracle) emittedByKeys(p place, like *value) map[string]string {
	emitted := p.emitted
	for _, k := range p.node.List().Keys() {
		value := ""
		if v := o.keyValue(p.atom.List, k.Name, like); v.isScalar() {
			value = v.plainText()
		}
		emitted = with(emitted, k.Emits, value)
	}
	return emitted
}

func (s *subject) keyValue(l *smd.List, name string, item *value) *value {
	if v := item.get(name); v != nil {
		return v
	}
	return s.keyDefault(l, name)
}

func quoted(v *value) string {
	switch {
	case v == nil, v.kind == null:
		return "null"
	case v.kind == text:
		return strconv.Quote(v.text)
	case v.isScalar():
		return v.plainText()
	}
	return "…"
}

// identity is equal for items with equal keys. It fails if the keys do not identify the item (D5).
func (o *oracle) identity(l *smd.List, item *value) (string, bool) {
	keys := keysOf(l)
	if len(keys) == 0 {
		return o.text(item), true
	}
	if !item.is(object) {
		return "", false
	}
	var parts []string
	present := false
	for _, k := range keys {
		v := o.keyValue(l, k, item)
		if v != nil && !v.isScalar() {
			return "", false
		}
		present = present || v != nil
		parts = append(parts, k+"="+v.canonical())
	}
	return strings.Join(parts, ";"), present
}

// byKey groups the items of a list. It fails if an item has no identity.
func (o *oracle) byKey(l *smd.List, v *value) (groups map[string][]*value, order []string, keyed bool) {
	groups = map[string][]*value{}
	if !v.is(list) {
		return groups, nil, true
	}
	for _, item := range v.items {
		id, ok := o.identity(l, item)
		if !ok {
			return nil, nil, false
		}
		groups[id] = append(groups[id], item)
		order = append(order, id)
	}
	return groups, order, true
}

// form is the way in which a value is compared with another value at the same place.
type form int

const (
	absent form = iota
	leaf
	members
	keyed
)

// formOf returns the form of a value. An empty value is a leaf, unless it is compared with another one of its kind (D1). Atomic values are leaves.
func (p place) formOf(v, other *value) form {
	switch {
	case v == nil:
		return absent
	case v.kind == object && p.atom.Map != nil && p.atom.Map.ElementRelationship != smd.Atomic && (len(v.members) > 0 || other.is(object)):
		return members
	case v.kind == list && p.atom.List != nil && p.atom.List.ElementRelationship == smd.Associative && (len(v.items) > 0 || other.is(list)):
		return keyed
	}
	return leaf
}

func (p place) forms() (old, new form) { return p.formOf(p.old, p.new), p.formOf(p.new, p.old) }

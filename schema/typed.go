package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Type returns the kind as structured-merge-diff has it. It is made with the first call.
func (k *Kind) Type() typed.ParseableType { return k.typed() }

// deduced is the name by which structured-merge-diff knows the type of unknown fields.
const deduced = "__untyped_deduced_"

// typer makes the types of structured-merge-diff for nodes.
type typer struct {
	names map[*Node]*string
	types []smd.TypeDef
}

// typeOf returns the type of a root. A scalar may have any type: API servers have checked the values.
func typeOf(root *Node) typed.ParseableType {
	t := &typer{names: map[*Node]*string{}}
	ref := t.ref(root)
	return typed.ParseableType{Schema: &smd.Schema{Types: t.types}, TypeRef: ref}
}

// ref returns the type of a node, by a name, because schemas may be recursive.
func (t *typer) ref(n *Node) smd.TypeRef {
	name := t.names[n]
	if name == nil {
		text := deduced
		if n != unknown {
			text = "t" + strconv.Itoa(len(t.names))
		}
		name = &text
		t.names[n] = name
		at := len(t.types)
		t.types = append(t.types, smd.TypeDef{Name: text})
		t.types[at].Atom = t.atom(n, nil)
	}
	return smd.TypeRef{NamedType: name}
}

// atom returns the forms of a node. keys are those by which the list that contains the node tells its items apart.
func (t *typer) atom(n *Node, keys []Key) smd.Atom {
	var out smd.Atom
	if n.AllowsScalar() {
		scalar := smd.Untyped
		out.Scalar = &scalar
	}
	if l := n.List(); l != nil {
		out.List = &smd.List{ElementRelationship: smd.Atomic}
		if !l.atomic {
			out.List.ElementRelationship = smd.Associative
		}
		for _, k := range l.keys {
			out.Keys = append(out.Keys, k.Name)
		}
		out.List.ElementType = t.ref(l.item)
		if slices.ContainsFunc(l.keys, func(k Key) bool { return k.Default != nil }) {
			out.List.ElementType = smd.TypeRef{Inlined: t.atom(l.item, l.keys)}
		}
	}
	if m := n.Map(); m != nil {
		out.Map = t.mapping(m, keys)
	}
	return out
}

func (t *typer) mapping(m *Map, keys []Key) *smd.Map {
	out := &smd.Map{ElementRelationship: smd.Separable}
	if m.Atomic() {
		out.ElementRelationship = smd.Atomic
	}
	for _, name := range slices.Sorted(maps.Keys(m.parts.Fields)) {
		field := smd.StructField{Name: name, Type: t.ref(m.parts.Fields[name])}
		if i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); i >= 0 && keys[i].Default != nil {
			_ = json.Unmarshal(keys[i].Default, &field.Default) // The compile has read it. Without a default the item has no such key.
		}
		out.Fields = append(out.Fields, field)
	}
	value := m.parts.Value
	if value == nil {
		value = unknown
	}
	out.ElementType = t.ref(value)
	return out
}

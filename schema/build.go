package schema

import (
	"fmt"
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// builder makes the nodes of one topology. Nodes with the same type, overlay, default and emitted parameters are shared. This also makes
// the build of recursive types end.
type builder struct {
	topology *Topology
	inline   map[string]*overlay
	memo     map[memoKey]*Node
	// permissions are shared by the whole compile.
	permissions permissions
	writes      map[string]*Written
	// at is the current path, for errors.
	at fieldpath.Pattern
	// places are the places of the steps of at.
	places []place
	errs   []error
	// room counts the nodes of the kind that have an overlay.
	room room
	// lacking are the guards whose path the kind lacks, with the error that says so.
	lacking map[*guard]error
	// atomic are the atomic lists on the path at.
	atomic    []string
	unemitted []unemitted
	bare      []bare
}

type memoKey struct {
	named, relationship string
	scalar              *smd.Scalar
	list                *smd.List
	mapping             *smd.Map
	overlay, emitted    string
	fallback            string
}

func newBuilder(topology *Topology, known permissions, traced bool) *builder {
	b := &builder{topology: topology, inline: map[string]*overlay{}, memo: map[memoKey]*Node{}, permissions: known, writes: map[string]*Written{}}
	var from []Origin
	if traced {
		from = []Origin{{FormOpenAPI, topology.Source}}
	}
	for _, name := range sortedKeys(topology.TypePermissions) {
		said, errs := statements(topology.Source, "", RankExtension, topology.TypePermissions[name], from)
		b.errs = append(b.errs, errs...)
		b.inline[name] = &overlay{}
		b.inline[name].lay(said)
	}
	return b
}

// layFragments adds what documents say of fragments to the types that include them.
func (b *builder) layFragments(documents []PermissionDocument, traced bool) {
	for _, name := range sortedKeys(b.topology.TypeContains) {
		for i := range documents {
			d := &documents[i]
			var from []Origin
			if traced {
				from = []Origin{d.origin()}
			}
			entries := d.within(b.topology.TypeContains[name])
			if len(entries) > v1alpha1.MaxExpandedPermissions {
				b.errs = append(b.errs, tooManyPlaces(b.topology.Source, d.Fragment))
				continue
			}
			said, errs := statements(d.Source, b.topology.Source, d.Rank, entries, from)
			b.errs = append(b.errs, errs...)
			b.inline[name].lay(said)
		}
	}
}

// kind returns the root of a type under the overlay of a kind, and the faults. After a fault it keeps no nodes for the next kind, which
// would otherwise share a node and miss the fault.
func (b *builder) kind(name string, o *overlay) (*Node, []error) {
	b.lacking, b.room = map[*guard]error{}, newRoom()
	root := b.build(smd.TypeRef{NamedType: &name}, o, nil, place{})
	b.errs = append(b.errs, b.unemittedFaults()...)
	errs := b.errs
	if b.errs = nil; len(errs)+len(b.lacking) > 0 {
		clear(b.memo)
	}
	return root, errs
}

// place holds the parameters that the path to a node has emitted, sorted.
type place struct {
	emitted []string
	// key is emitted as one string.
	key string
	// isScalar means that the type declares nothing but a scalar at the node itself.
	isScalar bool
}

func (p place) with(emits ...string) place {
	for _, name := range emits {
		if i, found := slices.BinarySearch(p.emitted, name); name != "" && !found {
			p.emitted = slices.Insert(slices.Clone(p.emitted), i, name)
			p.key = strings.Join(p.emitted, "\x00")
		}
	}
	return p
}

// below builds the node one step further.
func (b *builder) below(step fieldpath.Element, ref smd.TypeRef, o *overlay, fallback []byte, p place) *Node {
	b.at, b.places = append(b.at, step), append(b.places, p)
	n := b.build(ref, o, fallback, p)
	b.at, b.places = b.at[:len(b.at)-1], b.places[:len(b.places)-1]
	return n
}

// build returns the node of a type under an overlay. The overlay's guards have been checked against
// the type when it returns.
func (b *builder) build(ref smd.TypeRef, o *overlay, fallback []byte, p place) *Node {
	if b.isFull() {
		return unknown
	}
	o = b.withType(ref, o)
	atom, ok := b.topology.Types.Resolve(ref)
	if !ok || atom == (smd.Atom{}) {
		deduced := smd.Untyped
		atom = smd.Atom{Scalar: &deduced, List: &smd.List{ElementRelationship: smd.Atomic}, Map: &smd.Map{ElementRelationship: smd.Separable, ElementType: ref}}
		if o == nil && fallback == nil {
			return unknown
		}
	}
	if o == nil && fallback == nil && atom.List == nil && atom.Map == nil {
		return plain
	}
	key := b.key(ref, o, fallback, p)
	if n, done := b.memo[key]; done {
		return n
	}
	if o != nil {
		b.room.take(o)
	}
	if b.isFull() {
		return unknown
	}
	n := &Node{scalar: atom.Scalar != nil, fallback: fallback}
	b.memo[key] = n
	if o != nil {
		n.role = o.role
		n.emits = b.source(o, atom)
		n.written = b.written(o.written)
	}
	if atom.List != nil {
		n.list = b.list(atom.List, o, p)
	}
	if atom.Map != nil {
		n.mapping = b.mapping(atom.Map, o, n.emits, p)
	}
	if o != nil {
		b.unknownPaths(o, atom)
		own := p
		if n.scalar && n.mapping == nil {
			own = p.with(n.emits)
		}
		own.isScalar = n.scalar && n.mapping == nil && n.list == nil
		b.errs = append(b.errs, o.barsForNothing(b.at)...)
		b.noteUnemitted(o, atom)
		n.permissions = b.permissionsOf(o, own)
	}
	return n
}

// isFull reports whether the kind has too many nodes. Then it has a fault.
func (b *builder) isFull() bool {
	if b.room.made <= mostNodes {
		return false
	}
	if fault := b.room.fault(b.topology.Source, b.at); fault != nil {
		b.errs = append(b.errs, fault)
	}
	return true
}

// isUnknown reports whether the API server knows nothing about values of a type.
func (b *builder) isUnknown(ref smd.TypeRef) bool {
	atom, ok := b.topology.Types.Resolve(ref)
	return !ok || atom == (smd.Atom{}) || atom.Scalar != nil && atom.List != nil && atom.Map != nil
}

// withType combines an overlay with the permissions of the type itself.
func (b *builder) withType(ref smd.TypeRef, o *overlay) *overlay {
	if ref.NamedType != nil {
		return merge(o, b.inline[*ref.NamedType])
	}
	return o
}

func (b *builder) key(ref smd.TypeRef, o *overlay, fallback []byte, p place) memoKey {
	k := memoKey{
		scalar: ref.Inlined.Scalar, list: ref.Inlined.List, mapping: ref.Inlined.Map,
		overlay: o.identity(), emitted: p.key, fallback: string(fallback),
	}
	if ref.NamedType != nil {
		k.named = *ref.NamedType
	}
	if ref.ElementRelationship != nil {
		k.relationship = string(*ref.ElementRelationship)
	}
	return k
}

func (b *builder) list(l *smd.List, o *overlay, p place) *List {
	out := &List{atomic: l.ElementRelationship != smd.Associative}
	var emits []string
	if !out.atomic {
		defaults, item := b.fieldDefaults(l.ElementType), b.withType(l.ElementType, o.items())
		for _, name := range l.Keys {
			k := Key{Name: name, Default: defaults[name]}
			if g := item.field(name).emitting(); g != nil {
				k.Emits = g.entry.ParameterSource
			}
			emits = append(emits, k.Emits)
			out.keys = append(out.keys, k)
		}
	}
	if out.atomic {
		b.atomic = append(b.atomic, b.at.String())
		defer func() { b.atomic = b.atomic[:len(b.atomic)-1] }()
	}
	out.item = b.below(fieldpath.Element{Any: true}, l.ElementType, o.items(), nil, p.with(emits...))
	return out
}

func (b *builder) mapping(m *smd.Map, o *overlay, emits string, p place) *Map {
	out := &Map{atomic: m.ElementRelationship == smd.Atomic}
	if len(m.Fields) > 0 {
		out.fields = make(map[string]*Node, len(m.Fields))
	}
	for _, f := range m.Fields {
		out.fields[f.Name] = b.below(fieldpath.Element{Name: f.Name}, f.Type, o.field(f.Name), defaultJSON(f.Default), p)
	}
	if !hasValues(m) {
		return out
	}
	inner := p.with(emits)
	out.folds = b.folds(m, o)
	out.value = b.below(fieldpath.Element{Any: true}, m.ElementType, o.items(), nil, inner)
	if o == nil {
		return out
	}
	for _, name := range sortedKeys(o.fields) {
		if _, declared := out.fields[name]; declared {
			continue
		}
		if out.keys == nil {
			out.keys = map[string]*Node{}
		}
		b.errs = append(b.errs, o.fields[name].prefixed(name)...)
		if b.room.made += len(o.items().names()); b.isFull() { // A key has a copy of what is said about all keys.
			break
		}
		out.keys[name] = b.below(fieldpath.Element{Name: name}, m.ElementType, o.singleOut(name), nil, inner)
	}
	out.folded = out.foldedNames()
	return out
}

// hasValues reports whether an object type is a map and not a struct. structured-merge-diff gives a struct no element type.
func hasValues(m *smd.Map) bool {
	return m.ElementType.NamedType != nil || m.ElementType.Inlined != (smd.Atom{}) || len(m.Fields) == 0
}

func (b *builder) fieldDefaults(item smd.TypeRef) map[string][]byte {
	atom, ok := b.topology.Types.Resolve(item)
	if !ok || atom.Map == nil {
		return nil
	}
	defaults := map[string][]byte{}
	for _, f := range atom.Map.Fields {
		defaults[f.Name] = defaultJSON(f.Default)
	}
	return defaults
}

// defaultJSON returns the default as JSON, nil if there is none or JSON cannot express it. The value may come from YAML, whose maps
// encoding/json does not accept.
func defaultJSON(value any) []byte {
	if value == nil {
		return nil
	}
	raw, err := smdvalue.ToJSON(smdvalue.NewValueInterface(value))
	if err != nil {
		return nil
	}
	return raw
}

// source returns the parameter name that the node emits, after a check that it can emit one.
func (b *builder) source(o *overlay, atom smd.Atom) string {
	g := o.emitting()
	if g == nil {
		return ""
	}
	granularMap := atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic && hasValues(atom.Map)
	if atom.Scalar == nil && !granularMap {
		if !g.entry.Optional && !g.entry.Bare {
			b.errs = append(b.errs, g.fault("%s: emits no parameter %q: put the source on a map, a scalar or a key property of a list-map", b.at, g.entry.ParameterSource))
		}
		return ""
	}
	return g.entry.ParameterSource
}

// unknownPaths reports the guards below o whose paths do not exist in the type.
func (b *builder) unknownPaths(o *overlay, atom smd.Atom) {
	isMap := atom.Map != nil && hasValues(atom.Map)
	if o.any != nil && !isMap && atom.List == nil {
		b.lost(o.any, b.at.Child(fieldpath.Element{Any: true}), "no list or map is there")
	}
	if isMap {
		return
	}
	known := map[string]bool{}
	if atom.Map != nil {
		for _, f := range atom.Map.Fields {
			known[f.Name] = true
		}
	}
	for _, name := range sortedKeys(o.fields) {
		if !known[name] {
			cure := "nothing is below it"
			if len(known) > 0 {
				cure = "its siblings are " + strings.Join(sortedKeys(known), ", ")
			}
			b.lost(o.fields[name], b.at.Child(fieldpath.Element{Name: name}), cure)
		}
	}
}

// lost reports the guards at and below a path that does not exist. at is written over: a copy for each step would take memory with the square of the
// length of a path.
func (b *builder) lost(o *overlay, at fieldpath.Pattern, cure string) {
	for _, g := range o.own() {
		if !g.entry.Optional {
			b.lacking[g] = g.fault("path %q does not exist: %s", at, cure)
		}
	}
	if o.any != nil {
		b.lost(o.any, append(at, fieldpath.Element{Any: true}), cure)
	}
	for _, name := range sortedKeys(o.fields) {
		b.lost(o.fields[name], append(at, fieldpath.Element{Name: name}), cure)
	}
}

// orRoot returns a pattern as a message shows it.
func orRoot(p fieldpath.Pattern) string {
	if len(p) == 0 {
		return "the root"
	}
	return fmt.Sprintf("%q", p.String())
}

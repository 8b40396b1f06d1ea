package compile

import (
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	smdvalue "sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// plain is the node of every scalar without permissions or other properties.
var plain = schema.NewNode(schema.NodeParts{Scalar: true, Unbarred: true, Verbless: true})

// builder makes the nodes of one topology. Nodes with the same type, overlay, default and emitted parameters are shared. This also makes
// the build of recursive types end.
type builder struct {
	topology *Topology
	inline   map[string]*overlay
	memo     map[memoKey]*schema.Node
	// permissions are shared by the whole compile.
	permissions permissions
	writes      map[string]*schema.Written
	// at is the current path, for errors.
	at fieldpath.Pattern
	// places are the places of the steps of at.
	places []place
	errs   []error
	// budget bounds the nodes of the kind that have an overlay.
	budget budget
	// lacking are the guards whose path the kind lacks, with the error that says so.
	lacking map[*guard]error
	// atomic are the atomic lists on the path at.
	atomic        []string
	unemitted     []unemitted
	parameterless []parameterless
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
	b := &builder{topology: topology, inline: map[string]*overlay{}, memo: map[memoKey]*schema.Node{}, permissions: known, writes: map[string]*schema.Written{}}
	var from []schema.Origin
	if traced {
		from = []schema.Origin{{Form: schema.FormOpenAPI, Source: topology.Source}}
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
			var from []schema.Origin
			if traced {
				from = []schema.Origin{d.origin()}
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
func (b *builder) kind(name string, o *overlay) (*schema.Node, []error) {
	b.lacking, b.budget = map[*guard]error{}, newBudget()
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
func (b *builder) below(step fieldpath.Element, ref smd.TypeRef, o *overlay, fallback []byte, p place) *schema.Node {
	b.at, b.places = append(b.at, step), append(b.places, p)
	n := b.build(ref, o, fallback, p)
	b.at, b.places = b.at[:len(b.at)-1], b.places[:len(b.places)-1]
	return n
}

// build returns the node of a type under an overlay. The overlay's guards have been checked against
// the type when it returns.
func (b *builder) build(ref smd.TypeRef, o *overlay, fallback []byte, p place) *schema.Node {
	if b.isFull() {
		return schema.Unknown()
	}
	o = b.withType(ref, o)
	atom, ok := b.topology.Types.Resolve(ref)
	if !ok || atom == (smd.Atom{}) {
		deduced := smd.Untyped
		atom = smd.Atom{Scalar: &deduced, List: &smd.List{ElementRelationship: smd.Atomic}, Map: &smd.Map{ElementRelationship: smd.Separable, ElementType: ref}}
		if o == nil && fallback == nil {
			return schema.Unknown()
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
		b.budget.count(o)
	}
	if b.isFull() {
		return schema.Unknown()
	}
	n := new(schema.Node)
	b.memo[key] = n
	parts := schema.NodeParts{Scalar: atom.Scalar != nil, Default: fallback}
	if o != nil {
		parts.Role = o.role
		parts.Emits = b.source(o, atom)
		parts.Written = b.written(o.written)
	}
	if atom.List != nil {
		parts.List = b.list(atom.List, o, p)
	}
	if atom.Map != nil {
		parts.Map = b.mapping(atom.Map, o, parts.Emits, p)
	}
	if o != nil {
		b.unknownPaths(o, atom)
		own := p
		if parts.Scalar && parts.Map == nil {
			own = p.with(parts.Emits)
		}
		own.isScalar = parts.Scalar && parts.Map == nil && parts.List == nil
		b.errs = append(b.errs, o.barsForNothing(b.at)...)
		b.noteUnemitted(o, atom)
		parts.Permissions = b.permissionsOf(o, own)
	}
	n.Make(parts)
	return n
}

// isFull reports whether the kind has too many nodes. Then it has a fault.
func (b *builder) isFull() bool {
	if b.budget.made <= mostNodes {
		return false
	}
	if fault := b.budget.fault(b.topology.Source, b.at); fault != nil {
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

func (b *builder) list(l *smd.List, o *overlay, p place) *schema.List {
	isAtomic := l.ElementRelationship != smd.Associative
	var keys []schema.Key
	var emits []string
	if !isAtomic {
		defaults, item := b.fieldDefaults(l.ElementType), b.withType(l.ElementType, o.items())
		for _, name := range l.Keys {
			k := schema.Key{Name: name, Default: defaults[name]}
			if g := item.field(name).emitting(); g != nil {
				k.Emits = g.entry.ParameterSource
			}
			emits = append(emits, k.Emits)
			keys = append(keys, k)
		}
	}
	if isAtomic {
		b.atomic = append(b.atomic, b.at.String())
		defer func() { b.atomic = b.atomic[:len(b.atomic)-1] }()
	}
	return schema.NewList(isAtomic, keys, b.below(fieldpath.Element{Any: true}, l.ElementType, o.items(), nil, p.with(emits...)))
}

func (b *builder) mapping(m *smd.Map, o *overlay, emits string, p place) *schema.Map {
	out := schema.MapParts{Atomic: m.ElementRelationship == smd.Atomic}
	if len(m.Fields) > 0 {
		out.Fields = make(map[string]*schema.Node, len(m.Fields))
	}
	for _, f := range m.Fields {
		out.Fields[f.Name] = b.below(fieldpath.Element{Name: f.Name}, f.Type, o.field(f.Name), defaultJSON(f.Default), p)
	}
	if !schema.HasValues(m) {
		return schema.NewMap(out)
	}
	inner := p.with(emits)
	out.Folds = b.folds(m, o)
	out.Value = b.below(fieldpath.Element{Any: true}, m.ElementType, o.items(), nil, inner)
	if o == nil {
		return schema.NewMap(out)
	}
	for _, name := range sortedKeys(o.fields) {
		if _, declared := out.Fields[name]; declared {
			continue
		}
		if out.Keys == nil {
			out.Keys = map[string]*schema.Node{}
		}
		b.errs = append(b.errs, o.fields[name].prefixed(name)...)
		if b.budget.made += len(o.items().names()); b.isFull() { // A key has a copy of what is said about all keys.
			break
		}
		out.Keys[name] = b.below(fieldpath.Element{Name: name}, m.ElementType, o.singleOut(name), nil, inner)
	}
	return schema.NewMap(out)
}

// folds reports whether programs that decode an object may ignore the case of its names: where it keeps unknown fields, nobody knows whether it is a
// struct or a map. Where the catalogue gives the names to verbs as parameters, they are keys of a map, such as labels.
func (b *builder) folds(m *smd.Map, o *overlay) bool {
	return schema.HasValues(m) && !o.hasKeys() && b.isUnknown(m.ElementType)
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
	granularMap := atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic && schema.HasValues(atom.Map)
	if atom.Scalar == nil && !granularMap {
		if !g.entry.Optional && !g.entry.Bare {
			b.errs = append(b.errs, g.fault("%s: emits no parameter %q: put the source on a map, a scalar or a key property of a list-map", b.at, g.entry.ParameterSource))
		}
		return ""
	}
	return g.entry.ParameterSource
}

// written compiles the recorded writes of a node. It returns nil if there are none or they are faulty.
func (b *builder) written(g *guard) *schema.Written {
	if g == nil {
		return nil
	}
	if known := b.writes[g.content]; known != nil {
		return known
	}
	w, err := schema.NewWritten(g.entry.Writes, g.content)
	if err != nil {
		b.errs = append(b.errs, g.fault("%s: %v", orRoot(b.at), err))
		return nil
	}
	b.writes[g.content] = w
	return w
}

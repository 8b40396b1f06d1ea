package schema

import (
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/verbs"
)

// likeness is which fields of a version are the same ones in another, by the paths of managedFields. A field of two versions counts as
// one if it has the same path and the same type in both. nil is a place that is not alike, with nothing alike in it.
type likeness struct {
	// whole says that the place and all that is in it is alike.
	whole  bool
	fields map[string]*likeness
	// items are those of a list, or the values of a map.
	items *likeness
}

// allAlike is the likeness of two versions in which each field has the same path.
var allAlike = &likeness{whole: true}

// has reports whether a path leads to the same field in both versions.
func (l *likeness) has(p fieldpath.Path) bool {
	for i := 0; i < len(p) && l != nil && !l.whole; i++ {
		next, declared := (*likeness)(nil), false
		if p[i].FieldName != nil {
			next, declared = l.fields[*p[i].FieldName]
		}
		if !declared {
			next = l.items
		}
		l = next
	}
	return l != nil && l.whole
}

// IsAlike reports whether a path of managedFields leads to the same field in another version as in this one.
func (k *Kind) IsAlike(apiVersion string, p fieldpath.Path) bool {
	return apiVersion == k.GroupVersion().String() || k.alike[apiVersion].has(p)
}

// IsAllAlike reports whether every path leads to the same field in another version as in this one.
func (k *Kind) IsAllAlike(apiVersion string) bool { return k.IsAlike(apiVersion, nil) }

// compareVersions finds out which fields of a version are the same ones in the others.
func (c *compiler) compareVersions(k *Kind, all []runtimeschema.GroupVersionKind) {
	gvk := k.GroupVersionKind
	for _, other := range all {
		their := k.versions[other.GroupVersion().String()]
		if their == nil || other == gvk {
			continue
		}
		l := allAlike
		if !c.keepsNames(gvk, other) {
			m := match{}
			l = m.compare(shapeOf(gvk, c.owner), shapeOf(other, c.owner))
			if k.Lossy() || their.Lossy() {
				l = l.withoutNotes()
			}
		}
		if k.alike == nil {
			k.alike = map[string]*likeness{}
		}
		k.alike[other.GroupVersion().String()] = l
	}
}

// withoutNotes leaves out labels and annotations, in which a conversion may keep what a version has no field for.
func (l *likeness) withoutNotes() *likeness {
	if l == nil {
		return nil
	}
	out := &likeness{fields: map[string]*likeness{}, items: l.items}
	for name, child := range l.fields {
		out.fields[name] = child
	}
	if l.whole {
		out.items = allAlike
	}
	out.fields["metadata"] = &likeness{fields: map[string]*likeness{"labels": nil, "annotations": nil}, items: allAlike}
	return out
}

// match is a comparison of the types of two versions. What is compared is remembered by its types: they may refer to themselves.
type match map[pair]*likeness

func (m match) compare(a, b shape) *likeness {
	if a.same(b) {
		return allAlike
	}
	if !a.exists() || !b.exists() {
		return nil
	}
	if a.ref.NamedType != nil && b.ref.NamedType != nil {
		at := pair{*a.ref.NamedType, *b.ref.NamedType, relation(a.ref), relation(b.ref)}
		if known, met := m[at]; met {
			return known
		}
		m[at] = nil
		out := m.inside(a, b)
		m[at] = out
		return out
	}
	return m.inside(a, b)
}

// inside compares the parts of two types that are not the same. Lists with other keys have no items in common.
func (m match) inside(a, b shape) *likeness {
	one, _ := a.types.Resolve(a.ref)
	two, _ := b.types.Resolve(b.ref)
	below := func(path Pattern) *likeness { return m.compare(a.at(path), b.at(path)) }
	values := Pattern{{any: true}}
	switch {
	case one.Map != nil && two.Map != nil && one.Map.ElementRelationship == two.Map.ElementRelationship:
		out := &likeness{fields: map[string]*likeness{}}
		for name := range a.fields() {
			out.fields[name] = below(Pattern{{name: name}})
		}
		for name := range b.fields() {
			out.fields[name] = below(Pattern{{name: name}})
		}
		if hasValues(one.Map) && hasValues(two.Map) {
			out.items = below(values)
		}
		return out
	case one.List != nil && two.List != nil && sameItems(one.List, two.List):
		return &likeness{items: below(values)}
	}
	return nil
}

// BarredWithin returns the barriers of the schema and of uncovered at the node and below it, without their parameters. Conditions count as
// true.
func (n *Node) BarredWithin(uncovered VerbSet) []verbs.Verb {
	h := &hidden{verbs: map[string]bool{}}
	walk(n, nil, map[*Node]bool{}, h.guard)
	return h.borne(uncovered)
}

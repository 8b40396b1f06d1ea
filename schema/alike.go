package schema

import (
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// likeness says which fields are the same in two versions, by the paths of managedFields. A field is the same if it has the same path and
// the same type in both. A struct, map or list whose parts have owners is the same if both versions have it, whatever its parts are. A
// nil likeness is a place where nothing is the same.
type likeness struct {
	// whole means that everything at and below the place is the same.
	whole  bool
	fields map[string]*likeness
	// items is the likeness of the items of a list or the values of a map.
	items *likeness
}

// allAlike is the likeness of two versions in which each field has the same path.
var allAlike = &likeness{whole: true}

// next returns the likeness one path element further.
func (l *likeness) next(e smdpath.PathElement) *likeness {
	if e.FieldName != nil {
		if out, declared := l.fields[*e.FieldName]; declared {
			return out
		}
	}
	return l.items
}

// of returns the paths of a set that lead to the same field in both versions. It descends only where the versions differ, because sets
// are large.
func (l *likeness) of(set *smdpath.Set) *smdpath.Set {
	out := smdpath.NewSet()
	switch {
	case l == nil:
		return out
	case l.whole:
		return set
	}
	set.Members.Iterate(func(e smdpath.PathElement) {
		if l.next(e) != nil {
			out.Members.Insert(e)
		}
	})
	set.Children.Iterate(func(e smdpath.PathElement) {
		if below, ok := set.Children.Get(e); ok {
			if alike := l.next(e).of(below); !alike.Empty() {
				*out.Children.Descend(e) = *alike
			}
		}
	})
	return out
}

// Alike returns the paths of managedFields in another version that lead to the same field in this version. Callers must not change either
// set.
func (k *Kind) Alike(apiVersion string, paths *smdpath.Set) *smdpath.Set {
	if apiVersion == k.GroupVersion().String() {
		return paths
	}
	return k.alike[apiVersion].of(paths)
}

// Knows reports whether, according to the sources of the kind, an API server can convert it to a version.
func (k *Kind) Knows(apiVersion string) bool {
	_, known := k.alike[apiVersion]
	return known || apiVersion == k.GroupVersion().String()
}

// ConvertsByName reports whether conversion between the versions of the kind changes only the apiVersion, or there is no conversion. Any
// other conversion may drop an empty struct, map or list.
func (k *Kind) ConvertsByName() bool { return k.convertsByName }

// Renames reports whether a field may have another name in another served version.
func (k *Kind) Renames() bool { return k.renames }

// compareVersions finds the fields of a version that are the same in the other versions.
func (c *compiler) compareVersions(k *Kind, all []runtimeschema.GroupVersionKind) {
	gvk := k.GroupVersionKind
	k.alike, k.convertsByName = map[string]*likeness{}, true
	unserved := c.owner[gvk].Unserved
	for _, other := range slices.Concat(all, unserved) {
		if other.GroupKind() != gvk.GroupKind() || other == gvk {
			continue
		}
		version := other.GroupVersion().String()
		byName := c.keepsNames(gvk, other) || c.owner[gvk].KeepsNames && slices.Contains(unserved, other)
		k.convertsByName = k.convertsByName && (byName || c.owner[other] != nil && !c.isServed(other))
		if !byName && c.owner[other] != nil && c.isServed(other) {
			k.renames = k.renames || !shapeOf(gvk, c.owner).same(shapeOf(other, c.owner))
		}
		switch their := k.versions[version]; {
		case byName:
			k.alike[version] = allAlike
		case their == nil:
			k.alike[version] = nil
		default:
			k.alike[version] = c.likenessOf(k, their)
		}
	}
}

// likenessOf returns the likeness of two versions whose conversion is not by name only.
func (c *compiler) likenessOf(k, their *Kind) *likeness {
	m := match{}
	l := m.compare(shapeOf(k.GroupVersionKind, c.owner), shapeOf(their.GroupVersionKind, c.owner))
	if l != allAlike || k.Lossy() || their.Lossy() {
		return l.withoutAnnotations()
	}
	return l
}

// withoutAnnotations removes the annotations, because a conversion may store fields there that a version does not have.
func (l *likeness) withoutAnnotations() *likeness {
	if l == nil {
		return nil
	}
	out := &likeness{fields: map[string]*likeness{}, items: l.items}
	maps.Copy(out.fields, l.fields)
	if l.whole {
		out.items = allAlike
	}
	out.fields["metadata"] = &likeness{fields: map[string]*likeness{"annotations": nil}, items: allAlike}
	return out
}

// match compares the types of two versions. It caches the results by types, because types may be recursive.
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

// inside compares the parts of two types that are not the same. Lists with different keys have no items in common.
func (m match) inside(a, b shape) *likeness {
	one, _ := a.types.Resolve(a.ref)
	two, _ := b.types.Resolve(b.ref)
	below := func(path fieldpath.Pattern) *likeness { return m.compare(a.at(path), b.at(path)) }
	values := fieldpath.Pattern{{Any: true}}
	switch {
	case (one.Map == nil) != (two.Map == nil) || (one.List == nil) != (two.List == nil) || (one.Scalar == nil) != (two.Scalar == nil):
	case one.Map != nil && one.Map.ElementRelationship != smd.Atomic && one.Map.ElementRelationship == two.Map.ElementRelationship:
		out := &likeness{fields: map[string]*likeness{}}
		for name := range a.fields() {
			out.fields[name] = below(fieldpath.Pattern{{Name: name}})
		}
		for name := range b.fields() {
			out.fields[name] = below(fieldpath.Pattern{{Name: name}})
		}
		if hasValues(one.Map) && hasValues(two.Map) {
			out.items = below(values)
		}
		return out
	case one.List != nil && one.List.ElementRelationship != smd.Atomic && sameItems(one.List, two.List):
		return &likeness{items: below(values)}
	}
	return nil
}

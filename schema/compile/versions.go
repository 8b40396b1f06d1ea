package compile

import (
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// A field that several versions have is one field: its claims and barriers hold in all. What a document says about one version is inherited by the
// others.

// inherited returns the statements of a document about other versions that hold in this one. To a path that may be another field here, only barriers
// apply: one with another type, or any path if the document is about versions that do not exist.
func (c *compiler) inherited(gvk runtimeschema.GroupVersionKind, d *PermissionDocument, said []statement) []statement {
	own := c.typeOf(gvk)
	var others []schema.Type
	for _, other := range c.versions[gvk.GroupKind()] {
		if d.matches(other) {
			others = append(others, c.typeOf(other))
		}
	}
	var out []statement
	for _, s := range said {
		e := s.guard.entry
		if len(s.path) == 0 || len(e.Writes) > 0 {
			continue
		}
		isSame := slices.ContainsFunc(others, func(other schema.Type) bool { return own.At(s.path...).Same(other.At(s.path...)) })
		if !isSame && !s.guard.bars() {
			continue
		}
		s.guard = s.guard.change(func(g *guard) { g.inherited, g.entry.Optional = true, true })
		if !isSame {
			s.guard = s.guard.withoutParameter()
			s.guard.entry.ParameterSource = ""
			s.guard.describe()
		}
		out = append(out, s)
	}
	return out
}

// keepsNames reports whether every field has the same path in both versions, whatever its type is.
func (c *compiler) keepsNames(a, b runtimeschema.GroupVersionKind) bool {
	return c.owner[a].KeepsNames && c.owner[a] == c.owner[b]
}

// typeOf returns the type of a kind.
func (c *compiler) typeOf(gvk runtimeschema.GroupVersionKind) schema.Type {
	return c.owner[gvk].typeNamed(c.owner[gvk].Kinds[gvk])
}

func (t *Topology) typeNamed(name string) schema.Type {
	return schema.NewType(t.Types, smd.TypeRef{NamedType: &name})
}

// allAlike is the likeness of two versions in which each field has the same path.
var allAlike = &schema.Likeness{Whole: true}

// compareVersions finds the fields of a version that are the same in the other versions.
func (c *compiler) compareVersions(p *schema.KindParts, all []runtimeschema.GroupVersionKind) {
	gvk := p.GroupVersionKind
	p.Alike, p.ConvertsByName = map[string]*schema.Likeness{}, true
	owner, resource := c.owner[gvk], c.owner[gvk].resource(gvk)
	p.BuiltIn = endpoint.BuiltIn(resource.Group, resource.Resource)
	for _, other := range slices.AppendSeq(slices.Clone(all), maps.Keys(owner.Unserved)) {
		if other.GroupKind() != gvk.GroupKind() || other == gvk {
			continue
		}
		version := other.GroupVersion().String()
		name, isUnserved := owner.Unserved[other]
		their := owner.typeNamed(name)
		if !isUnserved {
			their = c.typeOf(other)
		}
		byName := owner.KeepsNames && (isUnserved || c.owner[other] == owner) && sameOwners(c.typeOf(gvk), their, map[[2]schema.TypeID]bool{})
		p.ConvertsByName = p.ConvertsByName && (byName || c.owner[other] != nil && !c.isServed(other))
		if !byName && c.owner[other] != nil && c.isServed(other) {
			p.Renames = p.Renames || !c.typeOf(gvk).Same(their)
		}
		switch k := c.kinds[other]; {
		case byName:
			p.Alike[version] = allAlike
		case k == nil:
			p.Alike[version] = nil
		default:
			p.Alike[version] = c.likenessOf(c.kinds[gvk], k)
		}
	}
}

// likenessOf returns the likeness of two versions whose conversion is not by name only.
func (c *compiler) likenessOf(k, their *schema.Kind) *schema.Likeness {
	m := match{}
	l := m.compare(c.typeOf(k.GroupVersionKind), c.typeOf(their.GroupVersionKind))
	if l != allAlike || k.Lossy() || their.Lossy() {
		return withoutAnnotations(l)
	}
	return l
}

// withoutAnnotations removes the annotations, because a conversion may store fields there that a version does not have.
func withoutAnnotations(l *schema.Likeness) *schema.Likeness {
	if l == nil {
		return nil
	}
	out := &schema.Likeness{Fields: map[string]*schema.Likeness{}, Items: l.Items}
	maps.Copy(out.Fields, l.Fields)
	if l.Whole {
		out.Items = allAlike
	}
	out.Fields["metadata"] = &schema.Likeness{Fields: map[string]*schema.Likeness{"annotations": nil}, Items: allAlike}
	return out
}

// match compares the types of two versions. It caches the results by types, because types may be recursive.
type match map[[2]schema.TypeID]*schema.Likeness

func (m match) compare(a, b schema.Type) *schema.Likeness {
	if a.Same(b) {
		return allAlike
	}
	if !a.Exists() || !b.Exists() {
		return nil
	}
	if a.IsNamed() && b.IsNamed() {
		at := [2]schema.TypeID{a.ID(), b.ID()}
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
func (m match) inside(a, b schema.Type) *schema.Likeness {
	one, two := a.Atom(), b.Atom()
	below := func(step fieldpath.Element) *schema.Likeness { return m.compare(a.At(step), b.At(step)) }
	values := fieldpath.Element{Any: true}
	switch {
	case (one.Map == nil) != (two.Map == nil) || (one.List == nil) != (two.List == nil) || (one.Scalar == nil) != (two.Scalar == nil):
	case one.Map != nil && one.Map.ElementRelationship != smd.Atomic && one.Map.ElementRelationship == two.Map.ElementRelationship:
		out := &schema.Likeness{Fields: map[string]*schema.Likeness{}}
		for name := range a.Fields() {
			out.Fields[name] = below(fieldpath.Element{Name: name})
		}
		for name := range b.Fields() {
			out.Fields[name] = below(fieldpath.Element{Name: name})
		}
		if schema.HasValues(one.Map) && schema.HasValues(two.Map) {
			out.Items = below(values)
		}
		return out
	case one.List != nil && one.List.ElementRelationship != smd.Atomic && schema.SameItems(one.List, two.List):
		return &schema.Likeness{Items: below(values)}
	}
	return nil
}

// sameOwners reports whether owners have the same paths in two types, as far as both have the fields: the same parts have owners, and items the same keys.
func sameOwners(a, b schema.Type, met map[[2]schema.TypeID]bool) bool {
	if !a.Exists() || !b.Exists() || a.Same(b) {
		return true
	}
	if at := [2]schema.TypeID{a.ID(), b.ID()}; a.IsNamed() && b.IsNamed() {
		if met[at] {
			return true
		}
		met[at] = true
	}
	one, two := a.Atom(), b.Atom()
	below := func(step fieldpath.Element) bool { return sameOwners(a.At(step), b.At(step), met) }
	switch {
	case (one.Map == nil) != (two.Map == nil) || (one.List == nil) != (two.List == nil):
		return false
	case one.List != nil:
		return schema.SameItems(one.List, two.List) && below(fieldpath.Element{Any: true})
	case one.Map != nil:
		same := (one.Map.ElementRelationship == smd.Atomic) == (two.Map.ElementRelationship == smd.Atomic) && below(fieldpath.Element{Any: true})
		for _, t := range []schema.Type{a, b} {
			for name := range t.Fields() {
				same = same && below(fieldpath.Element{Name: name})
			}
		}
		return same
	}
	return true
}

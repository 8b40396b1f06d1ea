package sampleobject

import (
	"maps"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// node is a position in a schema.
type node struct {
	// path is nil at the root.
	path *field.Path
	// schema is the schema that a value must fit. Below a branch of oneOf, anyOf or allOf it is narrower than the structural schema.
	schema *apiextensions.JSONSchemaProps
	// structural has the defaults and the rules. It is nil if the schema specifies nothing.
	structural *structuralschema.Structural
	memo       *memo
}

// memo caches the children of a schema, so that the same position always has the same pointer.
type memo struct {
	properties map[place]node
	guides     map[*apiextensions.JSONSchemaProps][]*apiextensions.JSONSchemaProps
}

// place identifies a node, or a property of it.
type place struct {
	schema     *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	name       string
}

func newMemo() *memo {
	return &memo{properties: map[place]node{}, guides: map[*apiextensions.JSONSchemaProps][]*apiextensions.JSONSchemaProps{}}
}

// property returns the node of a declared property.
func (n node) property(name string) (node, bool) {
	declared, ok := n.schema.Properties[name]
	if !ok {
		return node{}, false
	}
	key := place{n.schema, n.structural, name}
	if known, ok := n.memo.properties[key]; ok {
		return known, true
	}
	child := node{path: n.path.Child(name), schema: &declared, memo: n.memo}
	if n.structural != nil {
		if structural, ok := n.structural.Properties[name]; ok {
			child.structural = &structural
		}
	}
	n.memo.properties[key] = child
	return child, true
}

// member returns the node of a property that is declared only by additionalProperties.
func (n node) member(name string) (node, bool) {
	if n.schema.AdditionalProperties == nil || n.schema.AdditionalProperties.Schema == nil {
		return node{}, false
	}
	child := node{path: n.path.Key(name), schema: n.schema.AdditionalProperties.Schema, memo: n.memo}
	if n.structural != nil && n.structural.AdditionalProperties != nil {
		child.structural = n.structural.AdditionalProperties.Structural
	}
	return child, true
}

// item returns the node of the items of a list.
func (n node) item() (node, bool) {
	if n.schema.Items == nil || n.schema.Items.Schema == nil {
		return node{}, false
	}
	child := node{path: n.path.Key("*"), schema: n.schema.Items.Schema, memo: n.memo}
	if n.structural != nil {
		child.structural = n.structural.Items
	}
	return child, true
}

// guides returns the schemas whose values fit the node.
func (n node) guides() []*apiextensions.JSONSchemaProps {
	known, ok := n.memo.guides[n.schema]
	if !ok {
		known = guides(n.schema)
		n.memo.guides[n.schema] = known
	}
	return known
}

// without returns the node without one property. The property stays required if it was: then no value fits.
func (n node) without(name string) node {
	schema := *n.schema
	schema.Properties = maps.Clone(schema.Properties)
	delete(schema.Properties, name)
	n.schema = &schema
	return n
}

// as returns the node with a narrower schema.
func (n node) as(guide *apiextensions.JSONSchemaProps) node {
	n.schema = guide
	return n
}

// hasDefault reports whether the API server sets the value by default.
func (n node) hasDefault() bool {
	return n.structural != nil && n.structural.Default.Object != nil
}

// maxGuides bounds the number of combinations of branches.
const maxGuides = 64

// guides returns the schemas whose values fit a schema: the schema itself, then combinations with one branch of each oneOf and
// anyOf merged into it. Everything in allOf is part of each. Each step removes a list of branches, so it ends.
func guides(schema *apiextensions.JSONSchemaProps) []*apiextensions.JSONSchemaProps {
	base := *schema
	base.AllOf = nil
	for i := range schema.AllOf {
		base = merge(base, schema.AllOf[i])
	}
	out := []*apiextensions.JSONSchemaProps{&base}
	branches, bare := base.OneOf, base
	if len(branches) > 0 {
		bare.OneOf = nil
	} else {
		branches, bare.AnyOf = base.AnyOf, nil
	}
	for i := range branches {
		if len(out) >= maxGuides {
			break
		}
		merged := merge(bare, branches[i])
		out = append(out, guides(&merged)...)
	}
	return out[:min(len(out), maxGuides)]
}

// merge adds the requirements of a branch to a schema, as far as they help to find a value. The value is checked against the
// original schema later.
func merge(base, branch apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
	base.Required = append(slices.Clone(base.Required), branch.Required...)
	base.Properties = maps.Clone(base.Properties)
	for name, narrower := range branch.Properties {
		declared, ok := base.Properties[name]
		if !ok {
			// The branch limits the value. It does not make the value optional.
			continue
		}
		base.Properties[name] = merge(declared, narrower)
	}
	if branch.Items != nil && branch.Items.Schema != nil && base.Items != nil && base.Items.Schema != nil {
		merged := merge(*base.Items.Schema, *branch.Items.Schema)
		base.Items = &apiextensions.JSONSchemaPropsOrArray{Schema: &merged}
	}
	for i := range branch.AllOf {
		base = merge(base, branch.AllOf[i])
	}
	if len(base.OneOf) == 0 {
		base.OneOf = branch.OneOf
	}
	if len(base.AnyOf) == 0 {
		base.AnyOf = branch.AnyOf
	}
	if branch.Enum != nil {
		base.Enum = branch.Enum
	}
	if branch.Pattern != "" {
		base.Pattern = branch.Pattern
	}
	if branch.Format != "" {
		base.Format = branch.Format
	}
	if branch.Not != nil && base.Not == nil {
		base.Not = branch.Not
	}
	if branch.Type != "" {
		base.Type = branch.Type
	}
	base.Minimum, base.ExclusiveMinimum = tighter(base.Minimum, branch.Minimum, 1), base.ExclusiveMinimum || branch.ExclusiveMinimum
	base.Maximum, base.ExclusiveMaximum = tighter(base.Maximum, branch.Maximum, -1), base.ExclusiveMaximum || branch.ExclusiveMaximum
	base.MinLength, base.MaxLength = tighter(base.MinLength, branch.MinLength, 1), tighter(base.MaxLength, branch.MaxLength, -1)
	base.MinItems, base.MaxItems = tighter(base.MinItems, branch.MinItems, 1), tighter(base.MaxItems, branch.MaxItems, -1)
	base.MinProperties, base.MaxProperties = tighter(base.MinProperties, branch.MinProperties, 1), tighter(base.MaxProperties, branch.MaxProperties, -1)
	base.MultipleOf = tighter(base.MultipleOf, branch.MultipleOf, 1)
	return base
}

// tighter returns the larger bound for sign 1, and the smaller for sign -1. nil means no bound.
func tighter[N int64 | float64](a, b *N, sign N) *N {
	if a == nil || b != nil && *b*sign > *a*sign {
		return b
	}
	return a
}

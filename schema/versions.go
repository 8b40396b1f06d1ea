package schema

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A field that several versions have is one field: its claims and barriers hold in all. What a document says about one version is lent to the
// others.

// lent returns the statements of a document about other versions that hold in this one. To a path that may be another field here, only barriers
// apply: one with another type, or any path if the document is about versions that do not exist.
func (c *compiler) lent(gvk runtimeschema.GroupVersionKind, d *PermissionDocument, said []statement) []statement {
	own := shapeOf(gvk, c.owner)
	var others []shape
	for _, other := range c.versions[gvk.GroupKind()] {
		if d.matches(other) {
			others = append(others, shapeOf(other, c.owner))
		}
	}
	var out []statement
	for _, s := range said {
		e := s.guard.entry
		if len(s.path) == 0 || len(e.Writes) > 0 {
			continue
		}
		isSame := slices.ContainsFunc(others, func(other shape) bool { return own.at(s.path).same(other.at(s.path)) })
		if !isSame && !s.guard.bars() {
			continue
		}
		s.guard = s.guard.change(func(g *guard) { g.lent, g.entry.Optional = true, true })
		if !isSame {
			s.guard = s.guard.bare()
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

package fieldperm

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/schema"
)

// folded returns what a manager owns as an API server has it where a schema has made a list or map atomic: the whole in place of
// its parts (structured-merge-diff: ReconcileFieldSetWithSchema).
func folded(root *schema.Node, owns *fieldpath.Set) *fieldpath.Set {
	parts, wholes := fieldpath.NewSet(), fieldpath.NewSet()
	owns.Iterate(func(p fieldpath.Path) {
		if n := atomicAt(root, p); n < len(p) {
			parts.Insert(slices.Clone(p))
			wholes.Insert(slices.Clone(p[:n]))
		}
	})
	if parts.Empty() {
		return owns
	}
	return owns.Difference(parts).Union(wholes)
}

// atomicAt returns how much of a path leads to the first atomic value on it, all if there is none.
func atomicAt(n *schema.Node, p fieldpath.Path) int {
	for i := range len(p) - 1 {
		if n = nodeBelow(n, &p[i]); n == nil {
			break
		}
		m, l := n.Map(), n.List()
		if isName := p[i+1].FieldName != nil; isName && m != nil && m.Atomic() || !isName && l != nil && l.Atomic() {
			return i + 1
		}
	}
	return len(p)
}

// nodeBelow returns the node that an element leads to, nil if there is none.
func nodeBelow(n *schema.Node, e *fieldpath.PathElement) *schema.Node {
	switch {
	case n == nil:
	case e.FieldName != nil && n.Map() != nil:
		child, _ := n.Map().Lookup([]byte(*e.FieldName))
		return child
	case e.FieldName == nil && n.List() != nil:
		return n.List().Item()
	}
	return nil
}

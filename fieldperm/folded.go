package fieldperm

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/schema"
)

// folded leaves out what an API server does by itself where a schema has made a list or map atomic: its owner comes to own the whole in
// place of the parts (structured-merge-diff: ReconcileFieldSetWithSchema). after is what the owner has.
func folded(root *schema.Node, lost, gained, after *fieldpath.Set) (parts, wholes *fieldpath.Set) {
	var from, to []fieldpath.Path
	lost.Iterate(func(p fieldpath.Path) {
		if n := atomicAt(root, p); n < len(p) && after.Has(p[:n]) {
			from, to = append(from, slices.Clone(p)), append(to, slices.Clone(p[:n]))
		}
	})
	if len(from) == 0 {
		return lost, gained
	}
	return lost.Difference(fieldpath.NewSet(from...)), gained.Difference(fieldpath.NewSet(to...))
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

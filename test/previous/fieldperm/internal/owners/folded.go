package owners

import (
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/previous/schema"
)

// folded returns the paths of a manager as the API server reads them after a schema made a list or map atomic: the whole value in place
// of its parts (structured-merge-diff: ReconcileFieldSetWithSchema).
func folded(root *schema.Node, owns *smdpath.Set) *smdpath.Set {
	parts, wholes := smdpath.NewSet(), smdpath.NewSet()
	for p := range paths(owns) {
		if n := atomicAt(root, p); n < len(p) {
			parts.Insert(p)
			wholes.Insert(p[:n])
		}
	}
	if parts.Empty() {
		return owns
	}
	return owns.Difference(parts).Union(wholes)
}

// atomicAt returns the length of the part of a path that leads to the first atomic value on it, the full length if there is none.
func atomicAt(n *schema.Node, p smdpath.Path) int {
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
func nodeBelow(n *schema.Node, e *smdpath.PathElement) *schema.Node {
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

package exact

import (
	"strings"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// irregular reports whether the names in a value do not tell its parts apart (D10).
func (s *subject) irregular(v *value) bool { return s.irregularAt(v, s.kind.Root) }

func (s *subject) irregularAt(v *value, n *schema.Node) bool {
	if v == nil {
		return false
	}
	if v.is(object) {
		if v.repeats() || n.Folds() && respells(v, n) {
			return true
		}
		for _, m := range v.members {
			child, _ := n.Map().Lookup([]byte(m.name))
			if s.irregularAt(m.value, child) {
				return true
			}
		}
	}
	for _, item := range v.items {
		// Below a value of a form that its type does not allow, nothing is known.
		child, _ := (*schema.Map)(nil).Lookup(nil)
		if n.List() != nil {
			child = n.List().Item()
		}
		if s.irregularAt(item, child) {
			return true
		}
	}
	return false
}

// respells reports whether a name differs in case only from another one, or from one of the schema.
func respells(v *value, n *schema.Node) bool {
	known := v.names()
	for step := range n.Children() {
		if !step.Any {
			known = append(known, step.Name)
		}
	}
	for _, name := range v.names() {
		for _, other := range known {
			if alike(name, other) || strings.HasSuffix(other, "/") && alike(prefixOf(name), other) {
				return true
			}
		}
	}
	return false
}

func alike(name, other string) bool { return name != other && strings.EqualFold(name, other) }

func prefixOf(name string) string { return name[:strings.IndexByte(name, '/')+1] }

// whole charges a change of an irregular object: its root, and each barrier of the kind and of sets.
func (o *oracle) whole(root place) {
	op := operationOf(o.old, o.new)
	o.charge(root, op)
	charged := map[verbs.Verb]bool{}
	bar := func(v verbs.Verb) {
		if !charged[v] {
			charged[v] = true
			o.charges = append(o.charges, charge{operation: op, path: root.shown(), chain: []verbs.Verb{v}})
		}
	}
	known := map[string]bool{}
	o.kind.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			known[p.Base().Name()] = true
			if p.MayBar() {
				bar(p.Base())
			}
		}
	})
	for v := range o.uncovered {
		if v == verbs.All() || known[v.Name()] {
			bar(v)
		}
	}
	for _, v := range o.kind.HiddenBarriers(o.uncovered) {
		bar(v)
	}
}

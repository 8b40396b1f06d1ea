package schema

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// The API server derives fields of Pods from others. A condition that holds because of a derived field holds for the whole value of its barrier,
// and so for all changes in it. The template lacks the derived field, so the condition cannot be evaluated there.

// unseen is a derived field that the conditions of a barrier may notice and that a template may lack.
type unseen struct {
	// from is the field from which it is derived, from the root of a Pod.
	from fieldpath.Pattern
	// with is another field from which it is derived, without which it is not; nil for none.
	with fieldpath.Pattern
	// overwrites means that the API server also writes a value that a template shows.
	overwrites bool
	// within is the path to the derived field from the place of the barrier, without an item that the API server may add.
	within fieldpath.Pattern
	// uses are what the conditions use of the derived field, or of what it is in.
	uses []use
}

// unseenAt returns what the conditions of a barrier at a path of Pods may miss in templates.
func (g *guard) unseenAt(at fieldpath.Pattern) []unseen {
	if g.entry.ExcludedWhen == "" {
		return nil
	}
	conditions := g.conditions()
	var out []unseen
	for _, d := range derivations() {
		// Of two names for one field Misread knows.
		if d.isAlias || d.isAnywhere() || !meets(at, d.field) {
			continue
		}
		var uses []use
		for _, c := range conditions {
			if len(at) < len(d.field) {
				uses = append(uses, d.seenBy(len(at), c)...)
			} else {
				uses = append(uses, c.uses...)
			}
		}
		if len(uses) > 0 {
			out = append(out, unseen{d.from, d.with, isTopology(d), d.within(len(at)), uses})
		}
	}
	return out
}

// within returns the path to the field from a place above it, without an item that may be new. It is empty if the place is not above it.
func (d derivation) within(depth int) fieldpath.Pattern {
	end := len(d.field)
	if d.isItem {
		end = d.item() - 1
	}
	return d.field[min(depth, end):end]
}

// isItemOf reports whether the derived field is in each item that a condition uses. The API server adds no such item.
func (u unseen) isItemOf(used use) bool {
	for i, step := range used.path {
		if step.Any && (i >= len(u.within) || !u.within[i].Any) {
			return false
		}
	}
	return true
}

// isTopology reports whether the field is a label that the API server takes from the node.
func isTopology(d derivation) bool { return d.field[0].Name == string(PodMetadata) }

// meets reports whether one of two paths may lead to the other.
func meets(a, b fieldpath.Pattern) bool {
	for i := range min(len(a), len(b)) {
		if !a[i].Any && !b[i].Any && !isSameKey(a[i].Name, b[i].Name) {
			return false
		}
	}
	return true
}

// Templates are the templates of Pods in decoded objects of a kind.
type Templates struct {
	kind    *Kind
	objects []any
	// has says of fields, by their first step, whether a template has them.
	has map[*fieldpath.Element]bool
}

// Templates returns the templates in the objects, of which nil is none.
func (k *Kind) Templates(objects ...any) *Templates {
	return &Templates{kind: k, objects: objects, has: map[*fieldpath.Element]bool{}}
}

// Hide reports whether a condition of the permission may hold in Pods because of a field that the API server derives from one of a template. value is
// the decoded value of the node of the permission. What it shows stays, because the API server adds only what is absent.
func (t *Templates) Hide(p *Permission, value any) bool {
	return slices.ContainsFunc(p.unseen, func(u unseen) bool {
		return slices.ContainsFunc(u.uses, func(used use) bool { return u.overwrites || !u.isItemOf(used) || !used.isShown(value) }) && t.have(u.from) && t.have(u.with)
	})
}

// MayMiss reports whether a condition may notice fields that templates lack.
func (p *Permission) MayMiss() bool { return len(p.unseen) > 0 }

// Lack reports whether a barrier holds for no template, because none has the field without which the API server does not write the barred one.
func (t *Templates) Lack(p *Permission) bool { return !t.have(p.with) }

// DependsOnTemplate reports whether a barrier holds only for templates that have another field.
func (p *Permission) DependsOnTemplate() bool { return p.with != nil }

// have reports whether a template has a field. All have nil.
func (t *Templates) have(field fieldpath.Pattern) bool {
	if field == nil {
		return true
	}
	has, known := t.has[&field[0]]
	if !known {
		has = slices.ContainsFunc(t.objects, func(object any) bool { return t.kind.Root.hasInPod(object, field) })
		t.has[&field[0]] = has
	}
	return has
}

// hasInPod reports whether a part of a Pod at or below the node has a field.
func (n *Node) hasInPod(value any, field fieldpath.Pattern) bool {
	if !n.makesPods {
		return false
	}
	if string(n.pod) == field[0].Name && hasField(value, field[1:], given(field)) {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		m := n.mapping
		if m == nil {
			m = unknown.mapping
		}
		for key, below := range value {
			if m.Child(key).hasInPod(below, field) {
				return true
			}
		}
	case []any:
		if n.list != nil {
			return slices.ContainsFunc(value, func(below any) bool { return n.list.item.hasInPod(below, field) })
		}
	}
	return false
}

// given returns what says of a value of a field whether the API server derives other fields from it.
func given(field fieldpath.Pattern) func(value any) bool {
	if field.String() == hostNetwork {
		return func(value any) bool { return value != nil && value != false }
	}
	return func(value any) bool { return value != nil }
}

// hostNetwork is a field of which the API server does not tell whether it is false or absent.
const hostNetwork = ".spec.hostNetwork"

// hasField reports whether a decoded value has something that is given at a path. Names count in every case.
func hasField(value any, path fieldpath.Pattern, isGiven func(value any) bool) bool {
	if len(path) == 0 {
		return isGiven(value)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			name := path[0].Name
			is := path[0].Any || strings.EqualFold(key, name) || strings.HasSuffix(name, "/") && len(key) >= len(name) && strings.EqualFold(key[:len(name)], name)
			if is && hasField(below, path[1:], isGiven) {
				return true
			}
		}
	case []any:
		return path[0].Any && slices.ContainsFunc(value, func(below any) bool { return hasField(below, path[1:], isGiven) })
	}
	return false
}

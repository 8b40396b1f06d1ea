package schema

import (
	"fmt"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// All versions of a kind have the same barriers. A conversion may rename a field, so that a barrier of one version has no place in another. Then it
// is a demand of every change through the other version, until that version has a barrier with the same verb at a field of its own. Versions that
// are not served do not count: no request names a field as they do.

// place finds what the other versions guard and a lossless version cannot place.
func (c *compiler) place(s *Schema, gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, roundTrips bool) {
	h := &hidden{elsewhere: true, verbs: map[string]bool{}}
	for _, other := range all {
		if other == gvk || c.trees[gvk] != nil && c.sameTree(gvk, other) || !c.isServed(other) {
			continue
		}
		p := &versionPair{
			kind: s.kinds[gvk], other: s.kinds[other], own: shapeOf(gvk, c.owner), theirs: shapeOf(other, c.owner),
			keepsNames: c.keepsNames(gvk, other), keepsMeaning: roundTrips,
		}
		if err := s.failed[other]; err != nil {
			if !p.keepsNames && !p.own.same(p.theirs) {
				s.failed[gvk] = err
				return
			}
			continue
		}
		if p.other != nil {
			p.place(h, c.naming(gvk))
		}
	}
	if len(h.verbs) > 0 {
		slices.SortFunc(h.barriers, compareVerbs)
		s.kinds[gvk].hidden = h
	}
}

// These are the strengths of a permission. Each includes those before it.
const (
	mayBeUncovered = iota
	barsAtTimes
	barsAlways
	strengths
)

func (p *Permission) strength() int {
	switch {
	case p.excluded:
		return barsAlways
	case p.Conditional():
		return barsAtTimes
	}
	return mayBeUncovered
}

// guarding counts, by the name of the verb, the places that have at least each strength.
type guarding map[string]*[strengths]int

func (g guarding) add(p *Permission) {
	if g[p.verb.Name()] == nil {
		g[p.verb.Name()] = &[strengths]int{}
	}
	for i := range p.strength() + 1 {
		g[p.verb.Name()][i]++
	}
}

// versionPair is a version of a kind, and another version of the same kind.
type versionPair struct {
	kind, other *Kind
	own, theirs shape
	keepsNames  bool
	// keepsMeaning means that a path that both versions have is one field, whatever its type is in each.
	keepsMeaning bool
}

// isSame reports whether a path leads to the same field in both versions.
func (p *versionPair) isSame(at fieldpath.Pattern) bool {
	a, b := p.own.at(at), p.theirs.at(at)
	return p.keepsNames || p.keepsMeaning && a.exists() && b.exists() || a.same(b)
}

// naming returns the entries of the documents about a version. A document without versions is about each.
func (c *compiler) naming(gvk runtimeschema.GroupVersionKind) []statement {
	var out []statement
	for i := range c.docs.Permissions {
		if d := &c.docs.Permissions[i]; d.matches(gvk) {
			out = append(out, c.read(i)...)
		}
	}
	return out
}

// place adds to h what the other version guards and this one cannot place. naming are the entries that say what fields are called in this version.
func (p *versionPair) place(h *hidden, naming []statement) {
	lacking, own := guarding{}, guarding{}
	first := map[string]fieldpath.Pattern{}
	isWhole := p.other.Guarded(MaxGuardedPlaces, func(at fieldpath.Pattern, theirs *Node) {
		if len(at) == 0 {
			return
		}
		var here *Node
		alike := false
		if p.isSame(at) {
			if here, alike = p.reach(at); here == nil {
				return // Conversion keeps the names, and prunes the field.
			}
		}
		for _, permission := range theirs.permissions {
			if here != nil && slices.ContainsFunc(here.permissions, func(q *Permission) bool { return q.guardsLike(permission, alike) }) {
				continue
			}
			lacking.add(permission)
			if name := permission.verb.Name(); first[name] == nil || permission.MayBar() {
				first[name] = at
			}
		}
	})
	if isWhole && len(lacking) == 0 {
		return
	}
	isWhole = isWhole && p.kind.Guarded(MaxGuardedPlaces, func(at fieldpath.Pattern, n *Node) {
		if len(at) == 0 || p.isSame(at) {
			return
		}
		for _, permission := range n.permissions {
			if slices.ContainsFunc(naming, func(s statement) bool { return s.guard.entry.Verb == permission.verb.Name() && s.path.Covers(at) }) {
				own.add(permission)
			}
		}
	})
	if !isWhole {
		h.add(p.other)
		h.instead = "the versions guard more fields than can be compared: give them one permission schema for all versions"
		return
	}
	for _, name := range sortedKeys(lacking) {
		have := own[name]
		if have == nil {
			have = &[strengths]int{}
		}
		missing := -1
		for strength, n := range lacking[name] {
			// If this version has places of the verb with the barrier and places without it, the barred field may be one of the latter.
			if isUnclear := n > 0 && have[strength] < have[mayBeUncovered]; n > have[strength] || isUnclear {
				missing = strength
			}
		}
		if v, err := verbs.New(name); missing >= 0 && err == nil {
			p.lacks(h, Unplaced{p.other.Version, first[name].String(), v, missing > mayBeUncovered})
		}
	}
}

// lacks adds a verb that this version cannot place.
func (p *versionPair) lacks(h *hidden, u Unplaced) {
	h.verbs[u.Verb.Name()] = true
	h.unplaced = append(h.unplaced, u)
	if u.IsBarrier {
		h.bar(u.Verb)
	}
	if h.instead == "" {
		h.instead = fmt.Sprintf("verb %q of field %q of version %q has no place in version %q: write through version %[3]q, or name version %[4]q in a permission schema that guards the field there",
			u.Verb, u.Path, u.Version, p.kind.Version)
	}
}

// reach returns the node of this version at a path of the other one, nil if there is none. alike reports whether both paths emit the same
// parameters.
func (p *versionPair) reach(at fieldpath.Pattern) (own *Node, alike bool) {
	own, theirs := p.kind.Root, p.other.Root
	alike = own.emits == theirs.emits
	for _, e := range at {
		if own.list != nil && theirs.list != nil && !slices.EqualFunc(own.list.keys, theirs.list.keys, func(a, b Key) bool { return a.Name == b.Name && a.Emits == b.Emits }) {
			alike = false
		}
		if own, theirs = own.below(e), theirs.below(e); own == nil || theirs == nil {
			return nil, false
		}
		alike = alike && own.emits == theirs.emits
	}
	return own, alike
}

// below returns the node that is one step further, nil if there is none.
func (n *Node) below(e fieldpath.Element) *Node {
	switch {
	case e.Any && n.list != nil:
		return n.list.item
	case e.Any && n.mapping != nil:
		return n.mapping.value
	case !e.Any && n.mapping != nil && (n.mapping.fields[e.Name] != nil || n.mapping.keys[e.Name] != nil || n.mapping.value != nil):
		return n.mapping.Child(e.Name)
	}
	return nil
}

// guardsLike reports whether p has the verbs of other, and is a barrier in every case in which other is one. Two conditions and two expressions are
// compared by identity only. alike says whether both paths emit the same parameters.
func (p *Permission) guardsLike(other *Permission, alike bool) bool {
	if p.verb != other.verb || other.MayBar() && !p.excluded && p.inAnyMode() != other.inAnyMode() {
		return false
	}
	return other.parameter == "" || alike && (p == other || sameVerb(p, other) && p.treatment == other.treatment && p.expression == nil && other.expression == nil)
}

// isServed reports whether clients may send objects in a version. All versions are served that an API server publishes or a definition
// has. Of the versions that are only compiled in, those are served that were recorded.
func (c *compiler) isServed(gvk runtimeschema.GroupVersionKind) bool {
	if !c.owner[gvk].RoundTrips {
		return true
	}
	resource := c.owner[gvk].resource(gvk)
	own, _ := endpoint.Lookup(resource.Group, resource.Resource, "")
	return own.Body.Kind == "" || own.GroupKind() != gvk.GroupKind() || slices.Contains(own.Versions, gvk.Version)
}

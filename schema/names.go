package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/verbs"
)

// A conversion that loses nothing may still give a field another name, or move it. Then a barrier that is known in one
// version has no place in another. A field of two versions counts as one only if it has the same path and the
// same type in both. Any other field behind a barrier may be anywhere in the other version, unless permission documents that
// name this version put a barrier with the same verb there, one for each. What guards the same field in both is in both trees,
// but where the documents of this version say something else of it.

// concealNames finds the barriers of other versions that are not in the tree of a lossless version: those on fields that it may
// have under other names, and those on fields that have another verb here.
func (c *compiler) concealNames(s *Schema, gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind) {
	own := shapeOf(gvk, c.owner)
	replicas, err := ParsePattern(c.owner[gvk].replicas(gvk))
	h := &hidden{lossless: true, shows: readsObject, replicas: err == nil, shown: own.fields(), verbs: map[string]bool{}}
	for _, other := range all {
		if other == gvk || c.trees[gvk] == c.trees[other] && c.trees[gvk] != nil {
			continue
		}
		p := &versionPair{kind: s.kinds[gvk], other: s.kinds[other], own: own, theirs: shapeOf(other, c.owner), keepsNames: c.keepsNames(gvk, other), replicas: replicas}
		if err := s.failed[other]; err != nil {
			if !p.keepsNames && !own.same(p.theirs) {
				s.failed[gvk] = err
				return
			}
			continue
		}
		if p.other == nil {
			continue
		}
		p.concealUnlike(h)
		if !p.keepsNames && c.unnamed(h, p) {
			p.concealAround(h)
		}
	}
	if len(h.verbs) == 0 {
		return
	}
	hasStatus := own.at(Pattern{{name: "status"}}).exists()
	h.elsewhere = hasStatus && !h.shown["status"] || !h.replicas
	slices.SortFunc(h.barriers, func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
	s.kinds[gvk].hidden = h
}

// The strengths of what guards a field, each with those before it.
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

// guarding counts the places with a verb, by the least strength that they have.
type guarding map[string]*[strengths]int

func (g guarding) add(p *Permission) {
	counts := g[p.verb.Name()]
	if counts == nil {
		counts = &[strengths]int{}
		g[p.verb.Name()] = counts
	}
	for i := 0; i <= p.strength(); i++ {
		counts[i]++
	}
}

// versionPair is a version of a kind and another one of the same.
type versionPair struct {
	kind, other *Kind
	own, theirs shape
	keepsNames  bool
	// replicas are where this version has them.
	replicas Pattern
}

// isSame reports whether a path of the other version is the same field in this one.
func (p *versionPair) isSame(at Pattern) bool { return p.own.at(at).same(p.theirs.at(at)) }

// concealAround says of a version with other names where nothing is hidden in it.
func (p *versionPair) concealAround(h *hidden) {
	h.shows = readsRequest
	for name := range h.shown {
		if name == "metadata" || !p.isSame(Pattern{{name: name}}) {
			delete(h.shown, name)
		}
	}
	h.replicas = h.replicas && p.isSame(p.replicas)
	h.advise("a field behind a barrier may have another name in version \"" + p.kind.Version + "\": write through version \"" + p.other.Version +
		"\", or name version \"" + p.kind.Version + "\" in a permission schema that guards the field there")
}

// unnamed adds to h what guards fields of another version that this one may have under other names, and reports whether
// there is any.
func (c *compiler) unnamed(h *hidden, pair *versionPair) bool {
	needed, known := guarding{}, guarding{}
	isWhole := pair.other.Guarded(maxGuardedPlaces, func(at Pattern, n *Node) {
		if len(at) > 0 && !pair.isSame(at) {
			for _, p := range n.permissions {
				needed.add(p)
			}
		}
	})
	if !isWhole {
		h.add(pair.other, false)
		return true
	}
	if len(needed) == 0 {
		return false
	}
	said := c.saidOf(pair.kind.GroupVersionKind)
	pair.kind.Guarded(maxGuardedPlaces, func(at Pattern, n *Node) {
		if len(at) == 0 || pair.isSame(at) {
			return
		}
		for _, p := range n.permissions {
			if slices.ContainsFunc(said, func(s statement) bool { return s.guard.entry.Verb == p.verb.Name() && s.path.covers(at) }) {
				known.add(p)
			}
		}
	})
	found := false
	for _, name := range sortedKeys(needed) {
		have := known[name]
		if have == nil {
			have = &[strengths]int{}
		}
		for strength, n := range needed[name] {
			if n <= have[strength] {
				continue
			}
			found, h.verbs[name] = true, true
			if v, err := verbs.New(name); err == nil && strength > mayBeUncovered {
				h.bar(v)
			}
		}
	}
	return found
}

// saidOf returns what documents say of a version that they name. The catalogue knows every version.
func (c *compiler) saidOf(gvk runtimeschema.GroupVersionKind) []statement {
	var out []statement
	for i := range c.docs.Permissions {
		if d := &c.docs.Permissions[i]; d.matches(gvk) && (len(d.Versions) > 0 || d.Rank <= RankCatalogue) {
			out = append(out, c.read(i)...)
		}
	}
	return out
}

// covers reports whether a path fits the pattern.
func (p Pattern) covers(path Pattern) bool {
	return slices.EqualFunc(p, path, func(a, b element) bool { return a.any || a == b })
}

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
// name this version put a barrier with the same verb there, one for each.

// concealNames finds the barriers of other versions on fields that a lossless version may have under other names.
func (c *compiler) concealNames(s *Schema, gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, owners map[runtimeschema.GroupVersionKind]*Topology) {
	own := shapeOf(gvk, owners)
	h := &hidden{lossless: true, metadata: true, replicas: true, shown: own.fields(), verbs: map[string]bool{}}
	for _, other := range all {
		if other == gvk || owners[gvk].KeepsNames && owners[gvk] == owners[other] || c.trees[gvk] == c.trees[other] && c.trees[gvk] != nil {
			continue
		}
		theirs := shapeOf(other, owners)
		if err := s.failed[other]; err != nil {
			if !own.same(theirs, nil) {
				s.failed[gvk] = err
				return
			}
			continue
		}
		if s.kinds[other] == nil || !c.unnamed(h, s.kinds[gvk], s.kinds[other], own, theirs) {
			continue
		}
		for name := range h.shown {
			if e := (Pattern{{name: name}}); name == "metadata" || !own.at(e).same(theirs.at(e), nil) {
				delete(h.shown, name)
			}
		}
		replicas, err := ParsePattern(owners[gvk].replicas(gvk))
		h.replicas = h.replicas && err == nil && own.at(replicas).same(theirs.at(replicas), nil)
		if h.instead == "" {
			h.instead = "a field behind a barrier may have another name in version \"" + gvk.Version + "\": write through version \"" + other.Version +
				"\", or name version \"" + gvk.Version + "\" in a permission schema that guards the field there"
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
	case p.excludedWhen != nil:
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

// unnamed adds to h what guards fields of another version that kind may have under other names, and reports whether
// there is any.
func (c *compiler) unnamed(h *hidden, kind, other *Kind, own, theirs shape) bool {
	needed, known := guarding{}, guarding{}
	isWhole := other.Guarded(maxGuardedPlaces, func(at Pattern, n *Node) {
		if len(at) > 0 && !own.at(at).same(theirs.at(at), nil) {
			for _, p := range n.permissions {
				needed.add(p)
			}
		}
	})
	if !isWhole {
		h.add(other, false)
		return true
	}
	if len(needed) == 0 {
		return false
	}
	said := c.saidOf(kind.GroupVersionKind)
	kind.Guarded(maxGuardedPlaces, func(at Pattern, n *Node) {
		if len(at) == 0 || own.at(at).same(theirs.at(at), nil) {
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
			if v, err := verbs.New(name); err == nil && strength > mayBeUncovered && !slices.Contains(h.barriers, v) {
				h.barriers = append(h.barriers, v)
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

package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// A lossless conversion may still rename or move a field. Then a barrier that is known in one version has no place in another. Two
// versions have a field in common only if it has the same path and the same type in both. Any other field behind a barrier may be
// anywhere in the other version. An exception is a version that permission documents name: if they put a barrier with the same verb
// there, one for each field, those are the fields. A field of a kind of Kubernetes keeps its meaning as long as it keeps its path, so for
// these kinds a document about every version names each version that has the path. A common field has its guards in both trees, unless
// the documents of this version give it other ones. Versions that are not served do not count: no request names a field as they do.

// concealNames finds the barriers of other versions that are missing in the tree of a lossless version: barriers on fields that may have
// other names in it, and barriers on fields that have another verb in it.
func (c *compiler) concealNames(s *Schema, gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, roundTrips bool) {
	own := shapeOf(gvk, c.owner)
	replicas, err := fieldpath.ParsePattern(c.owner[gvk].replicas(gvk))
	h := &hidden{lossless: true, replicas: err == nil, shown: own.fields(), verbs: map[string]bool{}}
	for _, other := range all {
		if other == gvk || c.trees[gvk] == c.trees[other] && c.trees[gvk] != nil || c.docs.Traced && sameButOrigins(c.trees[gvk], c.trees[other]) || !c.isServed(other) {
			continue
		}
		p := &versionPair{
			kind: s.kinds[gvk], other: s.kinds[other], own: own, theirs: shapeOf(other, c.owner),
			keepsNames: c.keepsNames(gvk, other), keepsMeaning: roundTrips, replicas: replicas,
		}
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
	hasStatus := own.at(fieldpath.Pattern{{Name: "status"}}).exists()
	h.elsewhere = hasStatus && !h.shown["status"] || !h.replicas
	slices.SortFunc(h.barriers, func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
	s.kinds[gvk].hidden = h
}

// These are the strengths of a guard. Each includes those before it.
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

// guarding counts, by verb, the places that have at least each strength.
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

// versionPair is a version of a kind, and another version of the same kind.
type versionPair struct {
	kind, other *Kind
	own, theirs shape
	keepsNames  bool
	// keepsMeaning means that a path that both versions have is one field, whatever its type is in each. Its parts may have other names.
	keepsMeaning bool
	// replicas is the path of the replicas in this version.
	replicas fieldpath.Pattern
}

// isSame reports whether a path leads to the same field in both versions.
func (p *versionPair) isSame(at fieldpath.Pattern) bool { return p.own.at(at).same(p.theirs.at(at)) }

// concealAround removes from h the fields in which the version may hide renamed fields, so that only the others count as shown.
func (p *versionPair) concealAround(h *hidden) {
	for name := range h.shown {
		if name == "metadata" || !p.isSame(fieldpath.Pattern{{Name: name}}) {
			delete(h.shown, name)
		}
	}
	h.replicas = h.replicas && p.isSame(p.replicas)
	h.advise("a field behind a barrier may have another name in version \"" + p.kind.Version + "\": write through version \"" + p.other.Version +
		"\", or name version \"" + p.kind.Version + "\" in a permission schema that guards the field there")
}

// unnamed adds to h the guards of fields of another version that may have other names in this version. It reports whether there are any.
func (c *compiler) unnamed(h *hidden, pair *versionPair) bool {
	needed, known := guarding{}, guarding{}
	guarded := map[string]bool{}
	guardOf := func(at fieldpath.Pattern, p *Permission) string { return p.verb.Name() + " " + at.String() }
	isWhole := pair.other.Guarded(maxGuardedPlaces, func(at fieldpath.Pattern, n *Node) {
		if len(at) > 0 && !pair.isSame(at) {
			for _, p := range n.permissions {
				needed.add(p)
				guarded[guardOf(at, p)] = true
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
	said := c.saidOf(pair.kind.GroupVersionKind, false)
	everywhere := c.saidOf(pair.kind.GroupVersionKind, pair.keepsMeaning)
	pair.kind.Guarded(maxGuardedPlaces, func(at fieldpath.Pattern, n *Node) {
		if len(at) == 0 || pair.isSame(at) {
			return
		}
		for _, p := range n.permissions {
			by := said
			if guarded[guardOf(at, p)] {
				by = everywhere
			}
			if slices.ContainsFunc(by, func(s statement) bool { return s.guard.entry.Verb == p.verb.Name() && s.path.Covers(at) }) {
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
			// If this version has places of the verb with the barrier and places without it, the barred field may be one of the latter.
			isClear := n == 0 || have[strength] == have[mayBeUncovered]
			if n <= have[strength] && isClear {
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

// saidOf returns the entries of the documents that name a version, or with all, of all documents about it. The catalogue counts as naming
// every version.
func (c *compiler) saidOf(gvk runtimeschema.GroupVersionKind, all bool) []statement {
	var out []statement
	for i := range c.docs.Permissions {
		if d := &c.docs.Permissions[i]; d.matches(gvk) && (all || len(d.Versions) > 0 || d.Rank <= RankCatalogue) {
			out = append(out, c.read(i)...)
		}
	}
	return out
}

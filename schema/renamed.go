package schema

import (
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// A conversion webhook that its author declares lossless may rename fields. The declaration says that no field of one version changes a
// field of another that has a different verb. Which field becomes which is not known, but verbs that cannot correspond are. A renamed
// field is one that the other version does not have with the same path and type. If each of two versions has more renamed fields below a
// chain of verbs than the other, then some field has one chain in the first version and another in the second: a user with the verb of
// the one could change the other. The declaration is wrong, or a document about one version changed the verb of a field in that version
// only. Fields without a verb of their own contradict nothing, because only more general verbs cover them. Barriers without a counterpart
// contradict nothing either: they are hidden, and every write through the version needs their verbs.

// Unshared is a field of one version whose verb has no counterpart in another version.
type Unshared struct {
	Path, Verb string
	// Other is the version without a counterpart.
	Other string
	// Contradicts means that the other version has verbs without a counterpart as well, so that the field may have one of them there.
	Contradicts bool
}

// Unshared returns the fields of this version for which a served version to which a webhook converts has no field with the same chain of
// verbs, in the order of paths. Fields that both versions have are not renamed, and not returned. It is empty for versions that are lossy for another reason than a contradiction.
func (k *Kind) Unshared() []Unshared { return k.unshared }

// renamed is one renamed field with a verb from a document about the kind.
type renamed struct {
	path, verb, chain string
	rank              Rank
	mayBar            bool
}

// unsharedOf returns the fields of gvk that have no counterpart in another version. The second result is false if the versions guard more
// fields than can be compared.
func (c *compiler) unsharedOf(s *Schema, gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind) ([]Unshared, bool) {
	var out []Unshared
	for _, other := range all {
		if other == gvk || c.owner[other] != c.owner[gvk] || s.kinds[other] == nil || c.keepsNames(gvk, other) {
			continue
		}
		own, isWhole := c.renamedIn(s, gvk, other)
		theirs, isAlsoWhole := c.renamedIn(s, other, gvk)
		if !isWhole || !isAlsoWhole {
			return nil, false
		}
		theirsLeft := lacking(theirs, own)
		counts := countChains(theirs)
		for _, f := range lacking(own, theirs) {
			contradicts := slices.ContainsFunc(theirsLeft, func(g renamed) bool { return g.rank >= f.rank && !g.mayBar })
			if contradicts || counts[f.chain] == 0 {
				out = append(out, Unshared{Path: f.path, Verb: f.verb, Other: other.Version, Contradicts: contradicts})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Unshared) int { return strings.Compare(a.Path, b.Path) })
	return out, true
}

// contradiction returns the loss of a version of which the declaration is wrong, and whether it is.
func (c *compiler) contradiction(s *Schema, gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind) (Loss, bool) {
	if c.owner[gvk].Lossy == nil || s.kinds[gvk] == nil {
		return Loss{}, false
	}
	unshared, isWhole := c.unsharedOf(s, gvk, all)
	if !isWhole {
		return Loss{Instead: "the versions guard more fields than can be compared: guard fewer fields that have another name in another version", Metadata: true, Elsewhere: true}, true
	}
	s.kinds[gvk].unshared = unshared
	if at := slices.IndexFunc(unshared, func(u Unshared) bool { return u.Contradicts }); at >= 0 {
		u := unshared[at]
		return Loss{Instead: fmt.Sprintf("the conversion is declared lossless, but version %q has verb %q at %q, and version %q has another verb at its name of a field: give each field the same verb in both versions",
			gvk.Version, u.Verb, u.Path, u.Other), Metadata: true, Elsewhere: true}, true
	}
	return Loss{}, false
}

// renamedIn returns the fields of a version that the other version does not have with the same path and type, and that have a verb from
// a document about this kind. What the catalogue says of every kind counts in chains only. A field that the other version keeps in an
// annotation with the same verb is not returned.
func (c *compiler) renamedIn(s *Schema, gvk, other runtimeschema.GroupVersionKind) ([]renamed, bool) {
	shape, theirs := shapeOf(gvk, c.owner), shapeOf(other, c.owner)
	said, saidThere := c.said(gvk), c.said(other)
	var out []renamed
	isWhole := s.kinds[gvk].Guarded(maxGuardedPlaces, func(at fieldpath.Pattern, n *Node) {
		if len(at) == 0 || at[0].Name == "metadata" || shape.at(at).same(theirs.at(at)) {
			return
		}
		g := said.find(at)
		if g == nil || g.entry.Verb == "" || g.rank <= RankCatalogue || saidThere.annotates(g.entry.Verb) {
			return
		}
		// What an administrator says about one version does not count as what the author says about the other.
		chain := fmt.Sprint(g.rank == RankAdministrator, chainOf(s.kinds[gvk].Root, at))
		out = append(out, renamed{path: at.String(), verb: g.entry.Verb, chain: chain, rank: g.rank, mayBar: g.bars()})
	})
	return out, isWhole
}

// annotates reports whether an annotation has the verb.
func (o *overlay) annotates(verb string) bool {
	for _, name := range []string{"metadata", "annotations"} {
		if o = o.fields[name]; o == nil {
			return false
		}
	}
	for _, key := range o.fields {
		if key.guard != nil && key.guard.entry.Verb == verb {
			return true
		}
	}
	return false
}

// chainOf returns a unique text for the verbs at and above a path.
func chainOf(n *Node, at fieldpath.Pattern) string {
	var b strings.Builder
	for _, e := range at {
		if n = n.below(e); n == nil {
			break
		}
		for _, p := range n.permissions {
			fmt.Fprintf(&b, "%s %q %v;", p.Describe(), p.expressionText, p.mode)
		}
	}
	return b.String()
}

func countChains(fields []renamed) map[string]int {
	out := map[string]int{}
	for _, f := range fields {
		out[f.chain]++
	}
	return out
}

// lacking returns the fields of which one version has more, with the same chain, than the other.
func lacking(fields, others []renamed) []renamed {
	have, want := countChains(others), countChains(fields)
	var out []renamed
	for _, f := range fields {
		if want[f.chain] > have[f.chain] {
			out = append(out, f)
		}
	}
	return out
}

package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// hidden describes what a write through one version may change, in any version of the kind, without showing it.
type hidden struct {
	instead string
	// lossy means that a write may change any field. If it is false, the version keeps every field, and cannot place some.
	lossy bool
	// elsewhere means that a write of a subresource may change fields in the rest of the object too.
	elsewhere bool
	// barriers are the barriers of the schemas, without their parameters, sorted. Conditional ones are included, because their conditions
	// are about values that the version does not show.
	barriers []verbs.Verb
	// verbs are the names of the verbs that guard such fields.
	verbs map[string]bool
	// unplaced: see Unplaced.
	unplaced []Unplaced
}

// Unplaced is a verb of another version that a version cannot place: the field has another name there, or other verbs.
type Unplaced struct {
	// Version has the verb at Path.
	Version, Path string
	Verb          verbs.Verb
	// IsBarrier means that the verb is a barrier there. If not, it may be one of an UncoveredPermissionSet.
	IsBarrier bool
}

// Lossy reports whether a write through this version may change fields that the version does not show, because it prunes them, stores them in
// annotations, or passes them to a conversion webhook. Only granular:* covers such a write, and the write must also pass HiddenBarriers.
func (k *Kind) Lossy() bool { return k.hidden != nil && k.hidden.lossy }

// Instead returns advice for a write that must pass HiddenBarriers, "" if no write must. It is the end of a sentence.
func (k *Kind) Instead() string {
	if k.hidden == nil {
		return ""
	}
	return k.hidden.instead
}

// HiddenBarriers returns the barriers that every change through the version must pass besides those of its own fields. For a lossy version these
// are the barriers of every version of the kind: those of the schemas, without their parameters, and those of uncovered whose verb any version
// has. For another version they are those of Unplaced. Only its own verb passes such a barrier. granular:* is not returned, because it belongs to
// the root.
func (k *Kind) HiddenBarriers(uncovered VerbSet) []verbs.Verb {
	if k.hidden == nil {
		return nil
	}
	return k.hidden.borne(uncovered)
}

// Unplaced returns the verbs of other versions that this version cannot place, each once for a version, by version and verb. It is empty for a
// lossy version.
func (k *Kind) Unplaced() []Unplaced {
	if k.hidden == nil {
		return nil
	}
	return k.hidden.unplaced
}

// BarredWithin returns the barriers of the schema and of uncovered at and below the node, without their parameters. Conditional barriers
// are included.
func (n *Node) BarredWithin(uncovered VerbSet) []verbs.Verb {
	h := &hidden{verbs: map[string]bool{}}
	each(n, map[*Node]bool{}, h.guard)
	return h.borne(uncovered)
}

// MayBarElsewhere reports whether a write of any subresource through this version must pass a barrier of a schema, wherever the barrier
// is in the object.
func (k *Kind) MayBarElsewhere() bool {
	return k.hidden != nil && k.hidden.elsewhere && len(k.hidden.barriers) > 0
}

// Through returns the kind for a request that was sent in the version sent of the same kind, and converted before the review. It returns
// k itself unless sent is lossy.
func (k *Kind) Through(sent *Kind) *Kind {
	if !sent.Lossy() {
		return k
	}
	out := *k
	out.hidden = sent.hidden
	return &out
}

func withoutParameter(v verbs.Verb) verbs.Verb {
	if whole, err := verbs.New(v.Name()); err == nil {
		return whole
	}
	return v
}

func compareVerbs(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) }

func (s VerbSet) sorted() []verbs.Verb {
	out := make([]verbs.Verb, 0, len(s))
	for v := range s {
		out = append(out, v)
	}
	slices.SortFunc(out, compareVerbs)
	return out
}

// conceal finds the lossy versions of every kind, and what each other version cannot place. If another version failed to compile, a lossy version
// fails as well, because the barriers of the other are not known.
func (c *compiler) conceal(s *Schema, owners map[runtimeschema.GroupVersionKind]*Topology) {
	versions := map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind{}
	roundTrips := map[runtimeschema.GroupKind]bool{}
	for _, gvk := range inOrder(owners) {
		versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], gvk)
	}
	for i := range c.docs.Topologies {
		if t := &c.docs.Topologies[i]; t.RoundTrips {
			for gvk := range t.Kinds {
				roundTrips[gvk.GroupKind()] = true
			}
		}
	}
	for kind, all := range versions {
		slices.SortFunc(all, func(a, b runtimeschema.GroupVersionKind) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		for _, gvk := range all {
			instead, lossy := owners[gvk].Lossy[gvk]
			if owners[gvk].Lossy == nil {
				instead, lossy = c.compare(gvk, all, roundTrips[kind])
			}
			if s.kinds[gvk] == nil {
				continue
			}
			if !lossy {
				if c.isServed(gvk) {
					c.place(s, gvk, all, roundTrips[kind])
				}
				continue
			}
			// In a write of a subresource, kube-apiserver keeps the rest of its own kinds as it is stored.
			h := &hidden{instead: instead, lossy: true, elsewhere: !roundTrips[kind], verbs: map[string]bool{}}
			for _, other := range all {
				if err := s.failed[other]; err != nil {
					s.failed[gvk] = err
					continue
				}
				h.add(s.kinds[other])
			}
			if s.failed[gvk] != nil {
				continue
			}
			s.kinds[gvk].hidden = h
		}
		compiled := make(map[string]*Kind, len(all))
		for _, gvk := range all {
			if s.failed[gvk] != nil {
				delete(s.kinds, gvk)
			}
			if k := s.kinds[gvk]; k != nil && len(all) > 1 {
				k.versions, compiled[gvk.GroupVersion().String()] = compiled, k
			}
		}
		for _, gvk := range all {
			if k := s.kinds[gvk]; k != nil {
				c.compareVersions(k, all)
			}
		}
	}
}

// compare finds from the trees whether a version is lossy, and returns the advice. If the versions round-trip, a version that equals the newest
// has all its fields. If nothing is known about conversion, the version must equal every other.
func (c *compiler) compare(gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, roundTrips bool) (instead string, lossy bool) {
	newest := all[0]
	with := all
	if roundTrips {
		with = all[:1]
	}
	for _, other := range with {
		switch {
		case c.sameTree(gvk, other):
		case roundTrips:
			return "version \"" + gvk.Version + "\" does not show every field: write through version \"" + newest.Version + "\"", true
		default:
			return "the versions of this kind differ, and nothing says what a server loses when it converts one into another", true
		}
	}
	return "", false
}

// sameTree reports whether two versions have equal trees, whatever documents the permissions come from.
func (c *compiler) sameTree(a, b runtimeschema.GroupVersionKind) bool {
	return c.trees[a] == c.trees[b] || c.docs.Traced && sameButOrigins(c.trees[a], c.trees[b])
}

// guard adds the permissions of a node.
func (h *hidden) guard(n *Node) {
	for _, p := range n.permissions {
		h.verbs[p.verb.Name()] = true
		if p.MayBar() {
			h.bar(withoutParameter(p.verb))
		}
	}
}

// bar adds a barrier.
func (h *hidden) bar(v verbs.Verb) {
	if !slices.Contains(h.barriers, v) {
		h.barriers = append(h.barriers, v)
	}
}

// borne returns the barriers of the schema, and those of uncovered whose verb guards a field.
func (h *hidden) borne(uncovered VerbSet) []verbs.Verb {
	out := slices.Clone(h.barriers)
	for _, v := range uncovered.sorted() {
		if v != verbs.All() && h.verbs[v.Name()] && !slices.Contains(h.barriers, v) {
			out = append(out, v)
		}
	}
	return out
}

// add adds the permissions of a kind's fields.
func (h *hidden) add(k *Kind) {
	seen := map[*Node]bool{k.Root: true}
	children(k.Root, func(_ fieldpath.Element, child *Node) { each(child, seen, h.guard) })
	slices.SortFunc(h.barriers, compareVerbs)
}

package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/verbs"
)

// Loss describes a lossy version: a write through it may change fields that it does not show, because it prunes them, stores them in
// annotations, or passes them to a conversion webhook.
type Loss struct {
	// Instead is the cure for users, in messages. It is the end of a sentence.
	Instead string
	// Metadata means that the write may change labels and annotations as well.
	Metadata bool
	// Elsewhere means that a write of a subresource may also change hidden fields in the rest of the object.
	Elsewhere bool
}

// hidden describes the fields that a write through one version may change, in any version of the kind, without showing them.
type hidden struct {
	instead   string
	elsewhere bool
	// lossless means that the version keeps every field, but some fields have unknown names in it, or other verbs.
	lossless bool
	// shown are the top-level fields in which a lossless version hides nothing.
	shown map[string]bool
	// replicas means that the Scale of a lossless version hides nothing.
	replicas bool
	// barriers are the barriers of the schemas, without their parameters, sorted. Conditional ones are included, because their conditions
	// are about values that the version does not show.
	barriers []verbs.Verb
	// verbs are the names of all verbs that guard a field.
	verbs map[string]bool
}

// Lossy reports whether a write through this version may change fields that the version does not show. Only granular:* covers such a
// write, and the write must also pass HiddenBarriers.
func (k *Kind) Lossy() bool { return k.hidden != nil && !k.hidden.lossless }

// Hides reports whether a change of any field may be a change of a field that has a barrier under another name in another version.
func (k *Kind) Hides() bool { return k.hidden != nil }

// MayHide reports whether a change in a top-level field may be a change of a field that has a barrier under another name in another
// version. "" is the whole object. Such a change must pass HiddenBarriers. A lossy version may hide more fields; see Lossy.
func (k *Kind) MayHide(field string) bool { return k.hidden != nil && !k.hidden.shown[field] }

// Instead returns advice for a write that must pass HiddenBarriers, "" if no write must.
func (k *Kind) Instead() string {
	if k.hidden == nil {
		return ""
	}
	return k.hidden.instead
}

// HiddenBarriers returns the barriers that a write must pass because of hidden fields. For a lossy version these are the barriers of
// every version of the kind: those of the schemas, without their parameters, and those of uncovered whose verb any version has. For a
// lossless version they are the barriers on fields that may have other names in it. Only its own verb passes such a barrier. granular:*
// is not returned, because it belongs to the root.
func (k *Kind) HiddenBarriers(uncovered VerbSet) []verbs.Verb {
	if k.hidden == nil {
		return nil
	}
	return k.hidden.borne(uncovered)
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

func (s VerbSet) sorted() []verbs.Verb {
	out := make([]verbs.Verb, 0, len(s))
	for v := range s {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// conceal finds the lossy versions of every kind, and the fields that each version hides. If another version failed to compile, a lossy version
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
			loss, lossy := owners[gvk].Lossy[gvk]
			if owners[gvk].Lossy == nil {
				loss, lossy = c.compare(gvk, all, roundTrips[kind])
			}
			if s.kinds[gvk] == nil {
				continue
			}
			if !lossy {
				loss, lossy = c.contradiction(s, gvk, all)
			}
			if !lossy {
				c.concealNames(s, gvk, all, roundTrips[kind])
				continue
			}
			h := &hidden{instead: loss.Instead, elsewhere: loss.Elsewhere, verbs: map[string]bool{}}
			for _, other := range all {
				if err := s.failed[other]; err != nil {
					s.failed[gvk] = err
					continue
				}
				h.add(s.kinds[other], loss.Metadata)
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

// compare finds from the trees whether a version is lossy. If the versions round-trip, a version that equals the newest has all its
// fields. If nothing is known about conversion, the version must equal every other.
func (c *compiler) compare(gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, roundTrips bool) (Loss, bool) {
	newest := all[0]
	with := all
	if roundTrips {
		with = all[:1]
	}
	for _, other := range with {
		if c.trees[gvk] != c.trees[other] && !(c.docs.Traced && sameButOrigins(c.trees[gvk], c.trees[other])) {
			if !roundTrips {
				return Loss{Instead: "the versions of this kind differ, and nothing says what a server loses when it converts one into another", Metadata: true, Elsewhere: true}, true
			}
			return Loss{Instead: "version \"" + gvk.Version + "\" does not show every field: write through version \"" + newest.Version + "\""}, true
		}
	}
	return Loss{}, false
}

// bar adds a barrier.
func (h *hidden) bar(v verbs.Verb) {
	if !slices.Contains(h.barriers, v) {
		h.barriers = append(h.barriers, v)
	}
}

// advise sets the advice, unless it is already set.
func (h *hidden) advise(instead string) {
	if h.instead == "" {
		h.instead = instead
	}
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

// add adds the permissions of a kind's fields. metadata says whether to include those of metadata, which is the same in every version.
func (h *hidden) add(k *Kind, metadata bool) {
	seen := map[*Node]bool{}
	if m := k.Root.mapping; m != nil {
		for name, child := range m.fields {
			if name != "metadata" || metadata {
				each(child, seen, h.guard)
			}
		}
		for _, child := range m.keys {
			each(child, seen, h.guard)
		}
		each(m.value, seen, h.guard)
	}
	slices.SortFunc(h.barriers, func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
}

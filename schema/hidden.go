package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/verbs"
)

// Loss says that a write through one version of a kind may change what the version does not show: fields that
// it prunes, keeps in annotations, or gives to a conversion webhook.
type Loss struct {
	// Instead is what a requester or administrator can do, for messages: the end of a sentence.
	Instead string
	// Metadata says that labels and annotations may be changed as well.
	Metadata bool
	// Elsewhere says that also a write of a subresource may change what is hidden in the rest of the object.
	Elsewhere bool
}

// hidden is what a write through a version may change without showing it, of all versions of the kind.
type hidden struct {
	instead   string
	elsewhere bool
	// shows is what match conditions may read of the object.
	shows reads
	// lossless says that the version keeps every field, but has some under names that are not known, or with other verbs.
	lossless bool
	// shown are the top-level fields in which a lossless version hides nothing.
	shown map[string]bool
	// replicas says that the scale of a lossless version hides nothing.
	replicas bool
	// barriers are those of the schemas, without their parameters, sorted. Conditions are about values that
	// the version does not show, so they count as true.
	barriers []verbs.Verb
	// verbs are all that guard something, by name.
	verbs map[string]bool
}

// Lossy reports whether a write through this version may change what the version does not show. No verb but
// granular:* covers such a write, and it must pass HiddenBarriers.
func (k *Kind) Lossy() bool { return k.hidden != nil && !k.hidden.lossless }

// MayHide reports whether a change in a top-level field may be a change of a field that has a barrier under another name
// in another version. The whole object is "". Such a change must pass HiddenBarriers. A lossy version may hide
// more: Lossy tells.
func (k *Kind) MayHide(field string) bool { return k.hidden != nil && !k.hidden.shown[field] }

// Instead says what can be done in place of a write that must pass HiddenBarriers, "" where none must.
func (k *Kind) Instead() string {
	if k.hidden == nil {
		return ""
	}
	return k.hidden.instead
}

// HiddenBarriers returns, for a write through a lossy version, the barriers of every version of the kind: those
// of the schemas, without their parameters, and those of uncovered that any version bears. For a lossless version these
// are the barriers on fields that it may have under other names. Each is passed by its own
// verb alone. It does not return granular:*, which is the root's own.
func (k *Kind) HiddenBarriers(uncovered VerbSet) []verbs.Verb {
	if k.hidden == nil {
		return nil
	}
	return k.hidden.borne(uncovered)
}

// BarredWithin returns the barriers of the schema and of uncovered at the node and below it, without their parameters. Conditions count as
// true.
func (n *Node) BarredWithin(uncovered VerbSet) []verbs.Verb {
	h := &hidden{verbs: map[string]bool{}}
	walk(n, nil, map[*Node]bool{}, h.guard)
	return h.borne(uncovered)
}

// MayBarElsewhere reports whether a write of any subresource through this version must pass a barrier of a schema,
// wherever in the object that is.
func (k *Kind) MayBarElsewhere() bool {
	return k.hidden != nil && k.hidden.elsewhere && len(k.hidden.barriers) > 0
}

// Through returns the kind for a request that was sent as another kind, a version of the same, and converted
// before it was reviewed. It is the kind itself, unless the version that was sent is lossy.
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

// conceal finds the lossy versions of every kind, and what versions hide. A lossy version of which another version
// failed to compile fails as well, because the barriers of the other are not known.
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
				c.concealNames(s, gvk, all)
				continue
			}
			h := &hidden{instead: loss.Instead, elsewhere: loss.Elsewhere, shows: readsMetadata, verbs: map[string]bool{}}
			if loss.Metadata {
				h.shows = readsRequest
			}
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

// compare tells what a version loses by its tree. A version that is the same as the newest has all that the newest
// has; if nothing is known of how a server converts, it has to be the same as every other.
func (c *compiler) compare(gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, roundTrips bool) (Loss, bool) {
	newest := all[0]
	with := all
	if roundTrips {
		with = all[:1]
	}
	for _, other := range with {
		if c.trees[gvk] != c.trees[other] {
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

// advise gives the advice, unless there is one.
func (h *hidden) advise(instead string) {
	if h.instead == "" {
		h.instead = instead
	}
}

// guard adds what guards a node.
func (h *hidden) guard(_ Pattern, n *Node) {
	for _, p := range n.permissions {
		h.verbs[p.verb.Name()] = true
		if p.MayBar() {
			h.bar(withoutParameter(p.verb))
		}
	}
}

// borne returns the barriers of the schema and those of uncovered that guard something.
func (h *hidden) borne(uncovered VerbSet) []verbs.Verb {
	out := slices.Clone(h.barriers)
	for _, v := range uncovered.sorted() {
		if v != verbs.All() && h.verbs[v.Name()] && !slices.Contains(h.barriers, v) {
			out = append(out, v)
		}
	}
	return out
}

// add adds what guards the fields of a kind. Metadata is the same in every version.
func (h *hidden) add(k *Kind, metadata bool) {
	seen := map[*Node]bool{}
	if m := k.Root.mapping; m != nil {
		for name, child := range m.fields {
			if name != "metadata" || metadata {
				walk(child, nil, seen, h.guard)
			}
		}
		for _, child := range m.keys {
			walk(child, nil, seen, h.guard)
		}
		walk(m.value, nil, seen, h.guard)
	}
	slices.SortFunc(h.barriers, func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
}

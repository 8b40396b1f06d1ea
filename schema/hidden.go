package schema

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Hidden describes what a write through one version may change, in any version of the kind, without showing it.
type Hidden struct {
	// Instead: see Kind.Instead.
	Instead string
	// Lossy means that a write may change any field. If it is false, the version keeps every field, and cannot place some.
	Lossy bool
	// Elsewhere means that a write of a subresource may change fields in the rest of the object too.
	Elsewhere bool
	// Barriers are the barriers of the schemas, without their parameters, sorted. Conditional ones are included, because their conditions
	// are about values that the version does not show.
	Barriers []verbs.Verb
	// Verbs are the names of the verbs that guard such fields.
	Verbs map[string]bool
	// Unplaced: see Kind.Unplaced.
	Unplaced []Unplaced
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
func (k *Kind) Lossy() bool { return k.parts.Hidden != nil && k.parts.Hidden.Lossy }

// Instead returns advice for a write that must pass HiddenBarriers, "" if no write must. It is the end of a sentence.
func (k *Kind) Instead() string {
	if k.parts.Hidden == nil {
		return ""
	}
	return k.parts.Hidden.Instead
}

// HiddenBarriers returns the barriers that every change through the version must pass besides those of its own fields. For a lossy version these
// are the barriers of every version of the kind: those of the schemas, without their parameters, and those of uncovered whose verb any version
// has. For another version they are those of Unplaced. Only its own verb passes such a barrier. granular:* is not returned, because it belongs to
// the root.
func (k *Kind) HiddenBarriers(uncovered VerbSet) []verbs.Verb {
	if k.parts.Hidden == nil {
		return nil
	}
	return k.parts.Hidden.with(uncovered)
}

// Unplaced returns the verbs of other versions that this version cannot place, each once for a version, by version and verb. It is empty for a
// lossy version.
func (k *Kind) Unplaced() []Unplaced {
	if k.parts.Hidden == nil {
		return nil
	}
	return k.parts.Hidden.Unplaced
}

// BarredWithin returns the barriers of the schema and of uncovered at and below the node, without their parameters. Conditional barriers
// are included.
func (n *Node) BarredWithin(uncovered VerbSet) []verbs.Verb {
	h := &Hidden{Verbs: map[string]bool{}}
	n.Each(h.guard)
	return h.with(uncovered)
}

// MayBarElsewhere reports whether a write of any subresource through this version must pass a barrier of a schema, wherever the barrier
// is in the object.
func (k *Kind) MayBarElsewhere() bool {
	return k.parts.Hidden != nil && k.parts.Hidden.Elsewhere && len(k.parts.Hidden.Barriers) > 0
}

// Through returns the kind for a request that was sent in the version sent of the same kind, and converted before the review. It returns
// k itself unless sent is lossy.
func (k *Kind) Through(sent *Kind) *Kind {
	if !sent.Lossy() {
		return k
	}
	return k.With(func(p *KindParts) { p.Hidden = sent.parts.Hidden })
}

func withoutParameter(v verbs.Verb) verbs.Verb {
	if whole, err := verbs.New(v.Name()); err == nil {
		return whole
	}
	return v
}

// CompareVerbs orders verbs by their text.
func CompareVerbs(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) }

func (s VerbSet) sorted() []verbs.Verb {
	out := make([]verbs.Verb, 0, len(s))
	for v := range s {
		out = append(out, v)
	}
	slices.SortFunc(out, CompareVerbs)
	return out
}

// guard adds the permissions of a node.
func (h *Hidden) guard(n *Node) {
	for _, p := range n.Permissions() {
		h.Verbs[p.Base().Name()] = true
		if p.MayBar() {
			h.Bar(withoutParameter(p.Base()))
		}
	}
}

// Bar adds a barrier.
func (h *Hidden) Bar(v verbs.Verb) {
	if !slices.Contains(h.Barriers, v) {
		h.Barriers = append(h.Barriers, v)
	}
}

// with returns the barriers of the schema, and those of uncovered whose verb guards a field.
func (h *Hidden) with(uncovered VerbSet) []verbs.Verb {
	out := slices.Clone(h.Barriers)
	for _, v := range uncovered.sorted() {
		if v != verbs.All() && h.Verbs[v.Name()] && !slices.Contains(h.Barriers, v) {
			out = append(out, v)
		}
	}
	return out
}

// Add adds the permissions of a kind's fields.
func (h *Hidden) Add(k *Kind) {
	seen := map[*Node]bool{k.Root: true}
	children(k.Root, func(_ fieldpath.Element, child *Node) { each(child, seen, h.guard) })
	slices.SortFunc(h.Barriers, CompareVerbs)
}

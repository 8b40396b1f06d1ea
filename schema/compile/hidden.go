package compile

import (
	"fmt"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// conceal finds the lossy versions of every kind, and what each other version cannot place. If another version failed to compile, a lossy version
// fails as well, because the barriers of the other are not known.
func (c *compiler) conceal() {
	roundTrips := map[runtimeschema.GroupKind]bool{}
	for i := range c.docs.Topologies {
		if t := &c.docs.Topologies[i]; t.RoundTrips {
			for gvk := range t.Kinds {
				roundTrips[gvk.GroupKind()] = true
			}
		}
	}
	for kind, versions := range c.versions {
		all := slices.Clone(versions)
		slices.SortFunc(all, func(a, b runtimeschema.GroupVersionKind) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		for _, gvk := range all {
			instead, lossy := c.owner[gvk].Lossy[gvk]
			if c.owner[gvk].Lossy == nil {
				instead, lossy = c.compare(gvk, all, roundTrips[kind])
			}
			if c.kinds[gvk] == nil {
				continue
			}
			if !lossy {
				if c.isServed(gvk) {
					c.place(gvk, all, roundTrips[kind])
				}
				continue
			}
			// In a write of a subresource, kube-apiserver keeps the rest of its own kinds as it is stored.
			h := &schema.Hidden{Instead: instead, Lossy: true, Elsewhere: !roundTrips[kind], Verbs: map[string]bool{}}
			for _, other := range all {
				if err := c.failed[other]; err != nil {
					c.failed[gvk] = err
					continue
				}
				h.Add(c.kinds[other])
			}
			if c.failed[gvk] != nil {
				continue
			}
			c.hide(gvk, h)
		}
		compiled := make(map[string]*schema.Kind, len(all))
		for _, gvk := range all {
			if c.failed[gvk] != nil {
				delete(c.kinds, gvk)
			}
		}
		for _, gvk := range all {
			k := c.kinds[gvk]
			if k == nil {
				continue
			}
			k = k.With(func(p *schema.KindParts) {
				c.compareVersions(p, all)
				if len(all) > 1 {
					p.Versions = compiled
				}
			})
			c.kinds[gvk], compiled[gvk.GroupVersion().String()] = k, k
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
	return c.trees[a] == c.trees[b] || c.docs.Traced && sameButOrigins(c.trees[a], c.trees[b], c.permissions.effects)
}

// All versions of a kind have the same barriers. A conversion may rename a field, so that a barrier of one version has no place in another. Then it
// is a demand of every change through the other version, until that version has a barrier with the same verb at a field of its own. Versions that
// are not served do not count: no request names a field as they do.

// place finds what the other versions guard and a lossless version cannot place.
func (c *compiler) place(gvk runtimeschema.GroupVersionKind, all []runtimeschema.GroupVersionKind, roundTrips bool) {
	h := &schema.Hidden{Elsewhere: true, Verbs: map[string]bool{}}
	for _, other := range all {
		if other == gvk || c.trees[gvk] != nil && c.sameTree(gvk, other) || !c.isServed(other) {
			continue
		}
		p := &versionPair{
			kind: c.kinds[gvk], other: c.kinds[other], own: c.typeOf(gvk), theirs: c.typeOf(other), same: c.permissions.same,
			keepsNames: c.keepsNames(gvk, other), keepsMeaning: roundTrips,
		}
		if err := c.failed[other]; err != nil {
			if !p.keepsNames && !p.own.Same(p.theirs) {
				c.failed[gvk] = err
				return
			}
			continue
		}
		if p.other != nil {
			p.place(h, c.naming(gvk))
		}
	}
	if len(h.Verbs) > 0 {
		slices.SortFunc(h.Barriers, schema.CompareVerbs)
		c.hide(gvk, h)
	}
}

// hide gives a kind its hidden fields.
func (c *compiler) hide(gvk runtimeschema.GroupVersionKind, h *schema.Hidden) {
	c.kinds[gvk] = c.kinds[gvk].With(func(p *schema.KindParts) { p.Hidden = h })
}

// These are the strengths of a permission. Each includes those before it.
const (
	mayBeUncovered = iota
	barsAtTimes
	barsAlways
	strengths
)

func strengthOf(p *schema.Permission) int {
	switch {
	case p.Excluded():
		return barsAlways
	case p.Conditional():
		return barsAtTimes
	}
	return mayBeUncovered
}

// placesByStrength counts, by the name of the verb, the places that have at least each strength.
type placesByStrength map[string]*[strengths]int

func (g placesByStrength) add(p *schema.Permission) {
	name := p.Base().Name()
	if g[name] == nil {
		g[name] = &[strengths]int{}
	}
	for i := range strengthOf(p) + 1 {
		g[name][i]++
	}
}

// versionPair is a version of a kind, and another version of the same kind.
type versionPair struct {
	kind, other *schema.Kind
	own, theirs schema.Type
	// same reports whether two permissions are made of equal entries.
	same       func(p, q *schema.Permission) bool
	keepsNames bool
	// keepsMeaning means that a path that both versions have is one field, whatever its type is in each.
	keepsMeaning bool
}

// isSame reports whether a path leads to the same field in both versions.
func (p *versionPair) isSame(at fieldpath.Pattern) bool {
	a, b := p.own.At(at...), p.theirs.At(at...)
	return p.keepsNames || p.keepsMeaning && a.Exists() && b.Exists() || a.Same(b)
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
func (p *versionPair) place(h *schema.Hidden, naming []statement) {
	lacking, own := placesByStrength{}, placesByStrength{}
	first := map[string]fieldpath.Pattern{}
	isWhole := p.other.Guarded(schema.MaxGuardedPlaces, func(at fieldpath.Pattern, theirs *schema.Node) {
		if len(at) == 0 {
			return
		}
		var here *schema.Node
		alike := false
		if p.isSame(at) {
			if here, alike = p.reach(at); here == nil {
				return // Conversion keeps the names, and prunes the field.
			}
		}
		for _, permission := range theirs.Permissions() {
			if here != nil && slices.ContainsFunc(here.Permissions(), func(q *schema.Permission) bool { return p.guardsLike(q, permission, alike) }) {
				continue
			}
			lacking.add(permission)
			if name := permission.Base().Name(); first[name] == nil || permission.MayBar() {
				first[name] = at
			}
		}
	})
	if isWhole && len(lacking) == 0 {
		return
	}
	isWhole = isWhole && p.kind.Guarded(schema.MaxGuardedPlaces, func(at fieldpath.Pattern, n *schema.Node) {
		if len(at) == 0 || p.isSame(at) {
			return
		}
		for _, permission := range n.Permissions() {
			if slices.ContainsFunc(naming, func(s statement) bool { return s.guard.entry.Verb == permission.Base().Name() && s.path.Covers(at) }) {
				own.add(permission)
			}
		}
	})
	if !isWhole {
		h.Add(p.other)
		h.Instead = "the versions guard more fields than can be compared: give them one permission schema for all versions"
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
			p.lacks(h, schema.Unplaced{Version: p.other.Version, Path: first[name].String(), Verb: v, IsBarrier: missing > mayBeUncovered})
		}
	}
}

// lacks adds a verb that this version cannot place.
func (p *versionPair) lacks(h *schema.Hidden, u schema.Unplaced) {
	h.Verbs[u.Verb.Name()] = true
	h.Unplaced = append(h.Unplaced, u)
	if u.IsBarrier {
		h.Bar(u.Verb)
	}
	if h.Instead == "" {
		h.Instead = fmt.Sprintf("verb %q of field %q of version %q has no place in version %q: write through version %[3]q, or name version %[4]q in a permission schema that guards the field there",
			u.Verb, u.Path, u.Version, p.kind.Version)
	}
}

// reach returns the node of this version at a path of the other one, nil if there is none. alike reports whether both paths emit the same
// parameters.
func (p *versionPair) reach(at fieldpath.Pattern) (own *schema.Node, alike bool) {
	own, theirs := p.kind.Root, p.other.Root
	alike = own.Emits() == theirs.Emits()
	for _, e := range at {
		if own.List() != nil && theirs.List() != nil && !slices.EqualFunc(own.List().Keys(), theirs.List().Keys(), func(a, b schema.Key) bool { return a.Name == b.Name && a.Emits == b.Emits }) {
			alike = false
		}
		if own, theirs = own.Step(e), theirs.Step(e); own == nil || theirs == nil {
			return nil, false
		}
		alike = alike && own.Emits() == theirs.Emits()
	}
	return own, alike
}

// guardsLike reports whether q has the verbs of other, and is a barrier in every case in which other is one. Two conditions and two expressions are
// compared by identity only. alike says whether both paths emit the same parameters.
func (p *versionPair) guardsLike(q, other *schema.Permission, alike bool) bool {
	if q.Base() != other.Base() || other.MayBar() && !q.Excluded() && !p.same(q, other) {
		return false
	}
	return other.ParameterName() == "" || alike && (q == other || sameVerb(q, other) && q.TakesPrefix() == other.TakesPrefix() && q.Expression() == "" && other.Expression() == "")
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

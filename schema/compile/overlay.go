package compile

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// overlay is the tree of a kind's entries by path pattern. It does not change after the build of nodes has begun.
type overlay struct {
	level
	// general are the levels of the patterns that stand for this place and for others: all values of a map, and the keys with a prefix.
	general []level
	// catalogued means that the catalogue has an entry here, in a document or in an included fragment.
	catalogued bool
	role       schema.Role
	// written is the entry that says when the API server writes the node, nil for none.
	written *guard
	fields  map[string]*overlay
	any     *overlay
	key     string
}

// level is what the documents say about one pattern.
type level struct {
	// claim is the entry of the highest standing, nil for none. It gives the node its verb.
	claim *guard
	// emitters are the entries of all documents with a parameter source. The one of the highest standing names the parameter.
	emitters []*guard
	// barriers are the entries of all documents that are barriers: no document lifts the barrier of another.
	barriers []*guard
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// lay adds the statements of one document to the tree. Of documents of one rank the claim of the last counts.
func (o *overlay) lay(document []statement) {
	for _, s := range document {
		at, g := o.at(s.path), s.guard
		at.catalogued = at.catalogued || g.rank <= RankCatalogue || g.isIncluded()
		// The catalogue gives a role, and no other document can remove it.
		if g.entry.Role != schema.RoleNone {
			at.role = g.entry.Role
		}
		if len(g.entry.Writes) > 0 {
			at.written = g
			continue
		}
		at.add(g)
		if g.entry.Verb != "" && (at.claim == nil || g.standing() >= at.claim.standing()) {
			at.claim = g
		}
	}
}

// add adds the entries that are barriers, and those with a parameter source.
func (l *level) add(entries ...*guard) {
	for _, g := range entries {
		if g.entry.ParameterSource != "" && !slices.Contains(l.emitters, g) {
			l.emitters = append(slices.Clip(l.emitters), g)
		}
		if g.bars() && !slices.ContainsFunc(l.barriers, func(known *guard) bool { return known.content == g.content && known.source == g.source }) {
			l.barriers = append(slices.Clip(l.barriers), g)
		}
	}
}

// emitting returns the guard whose parameter the node emits, nil for none.
func (o *overlay) emitting() *guard {
	if o == nil {
		return nil
	}
	for _, l := range slices.Backward(o.levels()) {
		if g := l.emitting(); g != nil {
			return g
		}
	}
	return nil
}

// emitting returns the emitter of the highest standing, the last of several.
func (l *level) emitting() *guard {
	var out *guard
	for _, g := range l.emitters {
		if out == nil || g.standing() >= out.standing() {
			out = g
		}
	}
	return out
}

// levels returns the levels of the place, from general to specific.
func (o *overlay) levels() []level { return append(slices.Clip(o.general), o.level) }

// own returns the guards of the overlay itself, without those below it.
func (o *overlay) own() []*guard {
	var own []*guard
	for _, l := range o.levels() {
		own = slices.Concat(own, []*guard{l.claim}, l.barriers, l.emitters)
	}
	return slices.DeleteFunc(own, func(g *guard) bool { return g == nil })
}

// at returns the overlay of a path, which it adds if there is none.
func (o *overlay) at(path fieldpath.Pattern) *overlay {
	for _, step := range path {
		o = o.grow(step)
	}
	return o
}

func (o *overlay) grow(step fieldpath.Element) *overlay {
	if step.Any {
		if o.any == nil {
			o.any = &overlay{}
		}
		return o.any
	}
	if o.fields == nil {
		o.fields = map[string]*overlay{}
	}
	next := o.fields[step.Name]
	if next == nil {
		next = &overlay{}
		o.fields[step.Name] = next
	}
	return next
}

func (o *overlay) field(name string) *overlay {
	if o == nil {
		return nil
	}
	return o.fields[name]
}

// names returns the names below the overlay that entries name.
func (o *overlay) names() map[string]*overlay {
	if o == nil {
		return nil
	}
	return o.fields
}

func (o *overlay) items() *overlay {
	if o == nil {
		return nil
	}
	return o.any
}

// merge lays the entries of a field over those of its type. The claim of the higher standing counts. If they are equal that of the field counts.
func merge(outer, inner *overlay) *overlay {
	if outer == nil {
		return inner
	}
	if inner == nil {
		return outer
	}
	m := outer.with(inner, merge)
	m.general = slices.Concat(inner.general, outer.general)
	m.emitters = slices.Concat(inner.emitters, m.emitters)
	m.add(inner.barriers...)
	if inner.claim != nil && (outer.claim == nil || inner.claim.standing() > outer.claim.standing()) {
		m.claim = inner.claim
	}
	return m
}

// narrow lays the entries of one key over those that are about other keys too. They become levels of their own: the barriers of all hold, and the
// claim of the key counts.
func narrow(key, wide *overlay) *overlay {
	if key == nil {
		return wide
	}
	if wide == nil {
		return key
	}
	m := key.with(wide, narrow)
	m.general = slices.Concat(wide.general, []level{wide.level}, key.general)
	return m
}

// with returns a copy of the overlay that takes from another one what it lacks, except for its levels.
func (o *overlay) with(other *overlay, combine func(o, other *overlay) *overlay) *overlay {
	m := &overlay{level: o.level, catalogued: o.catalogued || other.catalogued, role: o.role, written: o.written, any: combine(o.any, other.any)}
	if m.role == schema.RoleNone {
		m.role = other.role
	}
	if m.written == nil {
		m.written = other.written
	}
	if len(o.fields)+len(other.fields) > 0 {
		m.fields = map[string]*overlay{}
		maps.Copy(m.fields, o.fields)
		for name, theirs := range other.fields {
			m.fields[name] = combine(m.fields[name], theirs)
		}
	}
	return m
}

// A map has entries for all keys, for those that begin with a prefix, and for single ones. The claim of a key is that of the most specific pattern.
// The barriers of all hold, each beside the others.

// singleOut returns the overlay of one named key of a map. If a key has only recorded writes, it has the claim of its prefix.
func (o *overlay) singleOut(name string) *overlay {
	own := narrow(o.fields[name], o.prefixOf(name))
	if o.any == nil {
		return own
	}
	out := *narrow(own, o.any)
	out.written, out.key = own.written, ""
	return &out
}

// prefixOf returns the overlay of the prefix of a key, nil for none.
func (o *overlay) prefixOf(name string) *overlay {
	if prefix, has := schema.KeyPrefix(name); has {
		return o.fields[prefix]
	}
	return nil
}

// hasKeys reports whether the catalogue says that the names are keys of a map: the map emits them as a parameter. An entry of the catalogue for
// all items of a list does not say so, and a document may include it anywhere.
func (o *overlay) hasKeys() bool {
	if o.items() == nil || !o.any.catalogued {
		return false
	}
	return slices.ContainsFunc(o.emitters, func(g *guard) bool { return g.rank <= RankCatalogue || g.isIncluded() })
}

// identity returns a key that is equal for overlays with equal content, so that they share compiled nodes. It is a hash of the own content and of
// the keys of the levels below: texts of whole trees would take memory with the square of the length of a path.
func (o *overlay) identity() string {
	if o == nil {
		return ""
	}
	if o.key == "" {
		var c content
		c.texts(string(o.role))
		c.flags(o.catalogued, o.any != nil)
		c.number(len(o.general))
		for _, l := range o.levels() {
			c.guards([]*guard{l.claim})
			c.guards(l.emitters)
			c.guards(l.barriers)
			for _, g := range l.barriers {
				c.texts(g.source)
			}
		}
		c.guards([]*guard{o.written})
		if o.any != nil {
			c.texts(o.any.identity())
		}
		for _, name := range sortedKeys(o.fields) {
			c.texts(name, o.fields[name].identity())
		}
		sum := sha256.Sum256(c)
		o.key = string(sum[:])
	}
	return o.key
}
